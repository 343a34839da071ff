// Requests to the server. A calculation is sent as lines: its progress, then the result.

const JSON_TYPE = { "Content-Type": "application/json" };

export class Refused extends Error {}

async function refusal(response) {
  const problem = await response.json().catch(() => null);
  return new Refused(problem?.error || `the server answered ${response.status}.`);
}

async function post(path, body, headers, signal) {
  let response;
  try {
    response = await fetch(path, { method: "POST", body, headers: { ...JSON_TYPE, ...headers }, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused("the server cannot be reached. Is it still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

// The result of a calculation. Calls onProgress with numbers from 0 to 1 meanwhile; aborting the signal stops the
// calculation on the server too.
export async function ask(path, body, { signal, onProgress }) {
  const response = await post(path, JSON.stringify(body), { Accept: "application/x-ndjson" }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, last] = ["", null];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      last = JSON.parse(line);
      if ("progress" in last) onProgress(last.progress);
    }
  }
  if (last && "result" in last) return last.result;
  throw new Refused(last?.error || "the server broke off before the result.");
}

// A file that the server draws from a result.
export async function render(result, format) {
  return (await post(`api/render?format=${format}`, JSON.stringify(result))).blob();
}

export async function models() {
  const response = await fetch("api/models");
  if (!response.ok) throw await refusal(response);
  return response.json();
}
