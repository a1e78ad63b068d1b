// Asks a desk with OpenAI's client for Node, and prints what the client returned as JSON.
import OpenAI, { AuthenticationError, BadRequestError } from "openai";

const [, , baseURL, apiKey, question] = process.argv;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: question }];
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const models = [];
for await (const model of client.models.list()) models.push(model.id);
const model = models[0];
const answer = await client.chat.completions.create({ model, messages });
let streamed = "";
const stream = await client.chat.completions.create({ model, messages, stream: true });
for await (const chunk of stream) streamed += chunk.choices[0]?.delta?.content ?? "";
const helper = client.chat.completions.stream({ model, messages });
const collected = (await helper.finalChatCompletion()).choices[0].message.content;

async function refused(kind, ask) {
  try {
    await ask();
    return "accepted";
  } catch (error) {
    return error instanceof kind ? `${error.status}: ${error.message}` : `${error}`;
  }
}

const tools = await refused(BadRequestError, () =>
  client.chat.completions.create({ model, messages, tools: [tool] }),
);
const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
const key = await refused(AuthenticationError, () => stranger.models.list());
const text = answer.choices[0].message.content;
console.log(JSON.stringify({ models, text, streamed, collected, tools, key }));
