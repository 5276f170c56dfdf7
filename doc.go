// Package humanqa is the root of the module: a service in which people test web
// apps. README.md says how to run it, ARCHITECTURE.md how it is built. The program
// is cmd/humanqa.
//
// The package holds the invariants of the service, the meanings of its events, and the
// tests of all documents.
package humanqa
