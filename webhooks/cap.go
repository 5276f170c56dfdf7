package webhooks

// caps bound how many deliveries one endpoint is sent at once. An endpoint begins
// with a few; each batch of answers that shows it could take more doubles that; a
// failure leads back to the beginning, a time-out to one at a time until a 2xx.
type caps struct{ begin, most int }

// share is how many each of the endpoints that are served together may be sent at
// most. Beyond the beginning they share only what is spare: places above half of
// the pool. So however many an endpoint was trusted with before it fell silent,
// half of the pool is never reached by trust.
func (c caps) share(spare, endpoints int) int {
	return min(c.begin+max(spare, 0)/endpoints, c.most)
}

// after gives the new caps of the endpoints whose cap a batch changes, by
// project. An endpoint that was sent little says little of what it could take.
func (c caps) after(batch []outcome, now map[string]endpoint) map[string]int {
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
	changed := map[string]int{}
	for id, a := range got {
		was, next := now[id].Cap, now[id].Cap
		switch {
		case a.slow > 0:
			next = 1
		case was == 1 && a.good > 0, was > 1 && a.bad > 0:
			next = 0
		case was != 1 && a.bad == 0 && 4*a.good >= max(was, c.begin):
			next = min(2*max(was, c.begin), c.most)
		}
		if next != was {
			changed[id] = next
		}
	}
	return changed
}
