package credits

import "time"

// NextExpiry is when the next lot with something left expires.
func (s State) NextExpiry() (time.Time, bool) {
	if len(s.open) == 0 || s.lots[s.open[0]].expiresAt.IsZero() {
		return time.Time{}, false
	}
	return s.lots[s.open[0]].expiresAt, true
}
