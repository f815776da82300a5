/** The variables of the process. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A name, set to something: variables that are set to nothing are not there. */
export function readEnv(env: Env, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  return value === '' ? undefined : value;
}

/** `${NAME}` anywhere in a text; `env.NAME` (as Bifrost writes it) and `os.environ/NAME` (as LiteLLM does) as the whole of it. */
const IN_BRACES = /\$\{([^}]*)\}/g;
const WHOLE = /^(?:env\.|os\.environ\/)([A-Za-z_]\w*)$/;
const NAME = /^[A-Za-z_]\w*$/;

/** Whether a text is one reference and nothing else: then it gives nothing away. */
export const isReference = (text: string): boolean => WHOLE.test(text) || /^\$\{[A-Za-z_]\w*\}$/.test(text);

export type Expanded = { text: string; isReference: boolean } | { fault: string };

/** The text with every reference replaced by what it refers to. */
export function expand(text: string, env: Env): Expanded {
  const whole = WHOLE.exec(text)?.[1];
  if (whole !== undefined) return variable(whole, env);
  const faults: string[] = [];
  const expanded = text.replace(IN_BRACES, (_, name: string) => {
    const value = NAME.test(name) ? variable(name, env) : { fault: NO_NAME };
    if ('fault' in value) faults.push(value.fault);
    return 'text' in value ? value.text : '';
  });
  const [fault] = faults;
  return fault === undefined ? { text: expanded, isReference: isReference(text) } : { fault };
}

// The text is not repeated: it may be the secret itself, put into braces by mistake.
const NO_NAME = `what stands in \${…} is not the name of a variable`;

function variable(name: string, env: Env): Expanded {
  const text = readEnv(env, name);
  return text === undefined ? { fault: `the environment variable ${name} is not set` } : { text, isReference: true };
}
