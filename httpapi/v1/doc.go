// Package v1 is the handlers of clients: one file for each noun of the API. A handler
// reads the request (package input), has the command run (admit.Writer), and renders a
// struct of its own, never one of the domain. The file asof.go reads the parameter asOf.
// A function with a name that ends in Then reads the state at the moment of asOf.
//
// The handlers of checkers are package checkers.
package v1
