// Package mcptools is the product's tools for coding agents, by the Model Context Protocol.
//
// A tool does nothing that the API does not: it sends requests to /v1 with the key of its
// caller, and so keeps the API's rules, limits and isolation. The same server stands behind
// /mcp of the service (package httpapi/mcp) and, on standard input and output, behind a
// client's binary: only the client of the API (package integrations/clients/go/humanqa) differs.
//
// A human test takes minutes to an hour. Clients that declare the extension
// io.modelcontextprotocol/tasks get a task whose id is the job's. The log keeps the task,
// so it survives a restart of either side. For others a wait returns within WaitLimit with
// what is known, and names the tool to call next.
//
// Texts of pages, checkers and models are fenced (package fence).
package mcptools
