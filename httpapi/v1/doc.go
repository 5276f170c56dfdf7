// Package v1 is the handlers of clients: one file for each noun of the API. A handler
// reads what is asked (package input), has the command run (admit.Writer), and renders a
// struct of its own, never one of the domain. ?asOf= is read in asof.go: a handler whose
// name ends in Then answers as it was then.
//
// The handlers of checkers are package checkers.
package v1
