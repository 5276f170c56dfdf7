// Package humanqa is the root of the module: a service in which people test web
// apps. README.md says how to run it, ARCHITECTURE.md how it is built; the
// program is cmd/humanqa. What stands here are the tests of those texts, and what
// the service shows of them.
package humanqa
