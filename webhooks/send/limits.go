package send

import (
	"maps"
	"time"

	"humanqa/webhooks"
)

// caps bound how many deliveries one endpoint is sent at once. An endpoint begins
// with a few; each batch of answers that shows it could take more doubles that; a
// failure leads back to the beginning, a time-out to one at a time until a 2xx.
type caps struct{ begin, most int }

// endpointShare is how many each of the endpoints that are served together may be sent at
// most. Beyond the beginning they share only what is spare: places above half of
// the pool. So however many an endpoint was trusted with before it fell silent,
// half of the pool is never reached by trust.
func (c caps) endpointShare(spare, endpoints int) int {
	return min(c.begin+max(spare, 0)/endpoints, c.most)
}

// adjustCaps sets the caps of endpoints after a batch. An endpoint that was sent little
// says little of what it could take.
func (c caps) adjustCaps(endpoints map[string]webhooks.EndpointRow, batch []outcome) {
	type answers struct{ good, bad, slow int }
	got := map[string]answers{}
	for _, o := range batch {
		a := got[o.ProjectID]
		switch {
		case o.slow:
			a.slow++
		case o.result == delivered:
			a.good++
		case o.result != postponed:
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
		case was != 1 && a.bad == 0 && 4*a.good >= max(was, c.begin):
			e.Cap = min(2*max(was, c.begin), c.most)
		}
		endpoints[id] = e
	}
}

// quota is how many more places of the pool an account may take that has taken some
// already: as long as it has no more than four times as many as are left free. One
// account alone so gets four fifths of the pool, the next one four fifths of what it
// left; the last free place is for an account that has none.
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

// quotas lists those of the accounts that take places.
func (u accountUse) quotas(free int) (quotas []accountQuota) {
	for account, taken := range u {
		quotas = append(quotas, accountQuota{account, quota(free, taken)})
	}
	return quotas
}

// fullAccounts are those that may take no more.
func (u accountUse) fullAccounts(free int) []string {
	full := []string{}
	for account, taken := range u {
		if quota(free, taken) == 0 {
			full = append(full, account)
		}
	}
	return full
}

// withBatch is the use once a batch has its places, too.
func (u accountUse) withBatch(batch []claimed) accountUse {
	with := accountUse{}
	maps.Copy(with, u)
	for _, c := range batch {
		with[c.AccountID]++
	}
	return with
}

// sooner is the earlier of two times from now on, of which a negative one is never.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
