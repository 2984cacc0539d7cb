// Lists the databases that a key can see, by generated types: openapi_test.go names the generator.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { argv: string[] };

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const { data, error } = await client.GET("/api/v1/databases");
if (!data) {
  throw new Error(JSON.stringify(error));
}
for (const database of data.data) {
  console.log(database.id, database.name, database.status);
  // @ts-expect-error Records have no such field: the types are those of the document.
  void database.colour;
}

const refused = await client.POST("/api/v1/databases", { body: { name: "Not a name", displayName: "x" } });
console.log(refused.response.status, refused.error?.error.code);
