package v1

// A request of a few bytes that makes the service work for long needs a place. Each
// account has a number of places, and so has this node. Without a place the answer is
// 429.
const (
	// QuotaOfAccount are an account's places of one kind.
	QuotaOfAccount = 2
	// QuotaOfNode are a node's places for all accounts. Each may have a connection to
	// Postgres, and folds the events that it reads.
	QuotaOfNode = 6
)
