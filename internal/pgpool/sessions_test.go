package pgpool_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/internal/pgpool"
)

func TestAProcessIsDeadWhenTwoLooksInARowMissIt(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for name, c := range map[string]struct {
		looks [][]string
		dead  []string
	}{
		"it lives":                            {[][]string{{"a"}, {"a"}, {"a"}}, nil},
		"its connection broke and came back":  {[][]string{{"a"}, {}, {"a"}, {}}, nil},
		"it is gone":                          {[][]string{{"a", "b"}, {"b"}, {"b"}}, []string{"a"}},
		"it is gone, which is told once":      {[][]string{{"a"}, {}, {}, {}}, nil},
		"it was never seen, as with a pooler": {[][]string{{}, {}, {}}, nil},
	} {
		var s pgpool.Sessions
		var dead []string
		for _, present := range c.looks {
			dead = s.Dead(start, present)
		}
		if !slices.Equal(dead, c.dead) {
			t.Errorf("%s: the last look finds %v dead, want %v", name, dead, c.dead)
		}
	}
	var s pgpool.Sessions
	s.Dead(start, []string{"a"})
	s.Dead(start.Add(time.Second), nil) // Postgres was restarted: every connection is new
	if dead := s.Dead(start.Add(time.Second), nil); len(dead) > 0 {
		t.Errorf("after a restart of Postgres %v is dead", dead)
	}
}
