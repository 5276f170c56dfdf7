package v1

// What a request of a few bytes can make the service work at for long has places:
// so many an account, so many on this node. Beyond them it is 429.
const (
	// QuotaOfAccount are an account's places of one kind.
	QuotaOfAccount = 2
	// QuotaOfNode are a node's, of all accounts. Each may have a connection to
	// Postgres, and folds what it reads.
	QuotaOfNode = 6
)
