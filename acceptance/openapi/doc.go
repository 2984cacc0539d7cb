// Package openapi holds the API's OpenAPI document to tools that others read it with: a linter, and generators of clients. Its
// tests fetch those tools, so they are built with the tag "openapi" only. "make openapi" runs them.
package openapi
