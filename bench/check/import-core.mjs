import '@sluice/core';
