package webhooks

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// room is how many more places of the pool an account may take that has some
// already: as long as it has no more than four times as many as are left free. One
// account alone so gets four fifths of the pool, the next one four fifths of what it
// left; the last free place is for an account that has none.
func room(free, taken int) int {
	more := max(0, 4*free-taken+4) / 5 // rounded up
	if taken > 0 || more > 1 {
		more = min(more, free-1)
	}
	return max(0, more)
}

// shares are the places that accounts have taken.
type shares map[string]int

// rooms gives each account that has places, and how many more it may take.
func (s shares) rooms(free int) (accounts []string, rooms []int64) {
	for _, account := range slices.Sorted(maps.Keys(s)) {
		accounts, rooms = append(accounts, account), append(rooms, int64(room(free, s[account])))
	}
	return accounts, rooms
}

// full are the accounts that may take no more.
func (s shares) full(free int) []string {
	full := []string{}
	for account, taken := range s {
		if room(free, taken) == 0 {
			full = append(full, account)
		}
	}
	return full
}

// with is what the shares are once a batch has its places.
func (s shares) with(batch []claimed) shares {
	with := shares{}
	maps.Copy(with, s)
	for _, c := range batch {
		with[c.AccountID]++
	}
	return with
}

// places counts what this process is sending, by account. As in the loop, a place
// comes back when its lease ends, whatever its request does.
type places struct {
	lease time.Duration

	mu sync.Mutex
	of map[string]taken // by delivery and attempt
}

type taken struct {
	account string
	until   time.Time
	handed  bool
}

func newPlaces(lease time.Duration) *places { return &places{lease: lease, of: map[string]taken{}} }

func (c claimed) placeID() string { return c.ID + " " + strconv.Itoa(c.Attempt) }

func (p *places) take(batch []claimed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := time.Now().Add(p.lease)
	for _, c := range batch {
		p.of[c.placeID()] = taken{account: c.AccountID, until: until}
	}
}

// hold takes one of the places that are kept for what is handed over, of which an
// account gets its share, too.
func (p *places) hold(c claimed, kept int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, all, own := time.Now(), 0, 0
	for _, one := range p.of {
		if one.handed && now.Before(one.until) {
			all++
			if one.account == c.AccountID {
				own++
			}
		}
	}
	if all >= kept || room(kept-all, own) == 0 {
		return false
	}
	p.of[c.placeID()] = taken{c.AccountID, now.Add(p.lease), true}
	return true
}

func (p *places) give(c claimed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, c.placeID())
}

// shares also tells how long until the first of the places comes back by itself:
// its account may be waiting for that. Negative: none is taken.
func (p *places) shares() (s shares, back time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.of, func(_ string, one taken) bool { return !now.Before(one.until) })
	s, back = shares{}, -1
	for _, one := range p.of {
		s[one.account]++
		back = sooner(back, one.until.Sub(now))
	}
	return s, back
}

// sooner is the earlier of two times from now on, of which a negative one is never.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
