import { carried, changed, extension, mapped } from './decision.ts';

/** Where a citation points: what other protocols know of it, the rest beside it. */
export const citations = (at: string, where: string) => ({
  [`${at}[*].cited_text`]: mapped(`${where}[].cited_text`),
  [`${at}[*].document_index`]: mapped(`${where}[].document_index`),
  [`${at}[*].document_title`]: mapped(`${where}[].title`),
  [`${at}[*].title`]: mapped(`${where}[].title`),
  [`${at}[*].url`]: mapped(`${where}[].url`),
  [`${at}[*].source`]: mapped(`${where}[].url`),
  [`${at}[page_location].*_page_number`]: mapped(`${where}[].page`),
  [`${at}[*].*_block_index`]: mapped(`${where}[].block`),
  [`${at}[*].*_char_index`]: carried(`${where}[].raw`),
  [`${at}[*].encrypted_index`]: carried(`${where}[].raw`),
  [`${at}[*].search_result_index`]: carried(`${where}[].raw`),
});

export const AS_BLOCK = 'a block of text';

export const cacheMark = (at: string, where: string) => ({
  [`${at}.cache_control`]: mapped(`${where}.cache_control`),
  [`${at}.cache_control.ttl`]: mapped(`${where}.cache_control.ttl`),
});

/** Text and images, as they stand in messages, results and documents. */
export const plainBlocks = (at: string, where: string) => ({
  [`${at}[text].text`]: mapped(`${where}.text`),
  ...citations(`${at}[text].citations`, `${where}.citations`),
  [`${at}[image].source(base64).data`]: mapped(`${where}.source.data`),
  [`${at}[image].source(base64).media_type`]: mapped(`${where}.source.media_type`),
  [`${at}[image].source(url).url`]: mapped(`${where}.source.url`),
  [`${at}[image].source(file).file_id`]: mapped(`${where}.source.file_id`),
  [`${at}[image].transformations.**`]: extension,
  ...cacheMark(`${at}[text]`, where),
  ...cacheMark(`${at}[image]`, where),
});

/** With what can be cited. */
export const documents = (at: string, where: string) => ({
  ...plainBlocks(at, where),
  ...cacheMark(`${at}[document]`, where),
  ...cacheMark(`${at}[search_result]`, where),
  [`${at}[document].source(base64).data`]: mapped(`${where}.source.file_data`),
  [`${at}[document].source(text).data`]: mapped(`${where}.source.text`),
  [`${at}[document].source(url).url`]: mapped(`${where}.source.file_url`),
  [`${at}[document].source(file).file_id`]: mapped(`${where}.source.file_id`),
  [`${at}[document].source(content).content`]: changed(`${where}.source.content`, AS_BLOCK),
  ...plainBlocks(`${at}[document].source(content).content`, `${where}.source.content[]`),
  [`${at}[document].title`]: mapped(`${where}.title`),
  [`${at}[document].context`]: mapped(`${where}.context`),
  [`${at}[document].citations.enabled`]: mapped(`${where}.citations_enabled`),
  [`${at}[search_result].content[].text`]: mapped(`${where}.source.content[].text`),
  ...cacheMark(`${at}[search_result].content[]`, `${where}.source.content[]`),
  ...citations(`${at}[search_result].content[].citations`, `${where}.source.content[].citations`),
  [`${at}[search_result].source`]: mapped(`${where}.search_result.source`),
  [`${at}[search_result].title`]: mapped(`${where}.title`),
  [`${at}[search_result].citations.enabled`]: mapped(`${where}.citations_enabled`),
});
