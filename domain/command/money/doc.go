// Package money charges accounts for jobs and refunds charges: the ledger of an account,
// and the close of its books. It has no command for callers. The submissions,
// cancellations and grants of package command go through it.
package money
