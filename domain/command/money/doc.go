// Package money charges accounts for jobs and gives charges back: the ledger of an
// account, and the close of its books. It has no command of its own that a caller could
// ask for; package command's submissions, cancellations and grants go through it.
package money
