package queue

import (
	"time"

	"humanqa/webhooks"
)

// Caps bound how many deliveries one endpoint is sent at once. An endpoint begins with a
// few. A batch of answers that shows that it could take more doubles its cap. A failure
// resets the cap to the initial one. A time-out sets it to one until a 2xx.
type Caps struct{ Begin, Most int }

// endpointShare is how many deliveries each of the endpoints that are served together may
// be sent at most. Above the initial cap they share only spare places: those above half
// of the pool. So however high the cap of an endpoint was before it fell silent, raised
// caps never use half of the pool.
func (c Caps) endpointShare(spare, endpoints int) int {
	return min(c.Begin+max(spare, 0)/endpoints, c.Most)
}

// adjustCaps sets the caps of endpoints after a batch. An endpoint that was sent little
// says little of what it could take.
func (c Caps) adjustCaps(endpoints map[string]webhooks.EndpointRow, batch []Outcome) {
	type answers struct{ good, bad, slow int }
	got := map[string]answers{}
	for _, o := range batch {
		a := got[o.ProjectID]
		switch {
		case o.Slow:
			a.slow++
		case o.Result == Delivered:
			a.good++
		case o.Result != Postponed:
			a.bad++
		}
		got[o.ProjectID] = a
	}
	for id, e := range endpoints {
		a, was := got[id], e.Cap
		switch {
		case a.slow > 0:
			e.Cap = 1
		case was == 1 && a.good > 0, was > 1 && a.bad > 0:
			e.Cap = 0
		case was != 1 && a.bad == 0 && 4*a.good >= max(was, c.Begin):
			e.Cap = min(2*max(was, c.Begin), c.Most)
		}
		endpoints[id] = e
	}
}

// quota is how many more places of the pool an account may take beside those it has.
// Afterwards it has at most four times as many places as are left free. So one account
// alone gets four fifths of the pool, the next account four fifths of the rest. The last
// free place is for an account that has none.
func quota(free, taken int) int {
	more := max(0, 4*free-taken+4) / 5 // rounded up
	if taken > 0 || more > 1 {
		more = min(more, free-1)
	}
	return max(0, more)
}

// accountUse is how many places of the pool each account takes.
type accountUse map[string]int

// accountQuota is how many more places an account may take.
type accountQuota struct {
	AccountID string `json:"account_id"`
	Quota     int    `json:"quota"`
}

// quotas lists the quotas of the accounts that take places.
func (u accountUse) quotas(free int) (quotas []accountQuota) {
	for account, taken := range u {
		quotas = append(quotas, accountQuota{account, quota(free, taken)})
	}
	return quotas
}

// fullAccounts are the accounts that may take no more places.
func (u accountUse) fullAccounts(free int) []string {
	full := []string{}
	for account, taken := range u {
		if quota(free, taken) == 0 {
			full = append(full, account)
		}
	}
	return full
}

// sooner is the shorter of two durations; a negative one means never.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
