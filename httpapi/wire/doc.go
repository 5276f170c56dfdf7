// Package wire is shared by all packages of the API: it reads requests and writes
// answers.
//
// A Request is an accepted HTTP request with its Route, its Caller and its body. Object
// and Query read its body and its query. They note every problem in Problems, so that one
// 400 names all of them. A handler gives an Answer or an error; errors.go is the only
// place where an error becomes a status. A large body lies in a Spool until it is parsed.
// A Quota keeps one account from taking the share of others.
package wire
