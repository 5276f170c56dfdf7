package httpapi

import (
	"sync"

	"humanqa/domain"
)

// What a request of a few bytes can make the service work at for long has places:
// so many an account, so many on this node. Beyond them it is 429.
const (
	// placesEach are an account's places of one kind.
	placesEach = 2
	// placesHere are a node's, of all accounts. Each may have a connection to
	// Postgres, and folds what it reads.
	placesHere = 6
	// placeRetry is how long a client that found no place waits, in seconds.
	placeRetry = 2
)

// Replay asks for a place for an account's page that reads a whole stream.
func (a *API) Replay(accountID string) (leave func(), err error) {
	return takePlace(a.pastPlaces, "reads of the past", accountID)
}

// takePlace asks for an account's place; leave gives it back. what is the kind, in
// the plural.
func takePlace(of *places, what, accountID string) (leave func(), err error) {
	if of.tryTake(accountID, 1) != nil {
		return nil, retryAfter(&domain.Error{
			Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
			Message: "too many " + what + " are under way", Hint: "send the same request again in a moment",
		}, placeRetry)
	}
	return sync.OnceFunc(func() { of.giveBack(accountID, 1) }), nil
}
