package eventstore

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
)

// unknownTypes bounds the types that are kept apart.
const unknownTypes = 20

// Unknown are events that a newer version of the service has written. This process
// passes over them, or leaves them to the newer one.
type Unknown struct {
	Type string
	// Version is that of a type which this binary knows in an older version; else 0.
	Version int
	Events  int64
	Last    domain.Position
}

// String names the type as an operator may read it.
func (u Unknown) String() string {
	name := u.Type
	if !typeName.MatchString(name) {
		name = "one with a strange name"
	}
	if u.Version > 0 {
		return fmt.Sprintf("%s in version %d", name, u.Version)
	}
	return name
}

var typeName = regexp.MustCompile(`^[a-z_]{1,40}\.[a-z_]{1,40}$`)

// unknowns counts unknown events as they arrive.
type unknowns struct {
	mu     sync.Mutex
	types  []Unknown
	events int64
}

// note counts an event that arrived, if this process does not know it. Other clients of
// the log may write events of their own, without the metadata of a command of ours.
func (u *unknowns) note(s slot) {
	found := Unknown{Type: s.event.Type}
	switch {
	case s.failed != nil && errors.Is(s.failed, domain.ErrNewer):
		found.Type, found.Version = s.failed.Type, s.failed.Version
	case s.failed != nil || s.event.Event != nil || s.event.Meta.CommandID == uuid.Nil:
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.events++
	at := slices.IndexFunc(u.types, func(k Unknown) bool { return k.Type == found.Type && k.Version == found.Version })
	if at < 0 {
		if len(u.types) == unknownTypes {
			return
		}
		u.types = append(u.types, found)
		at = len(u.types) - 1
	}
	u.types[at].Events++
	u.types[at].Last = s.position
}

// Unknown lists the unknown events since the process started, by type.
func (f *Feed) Unknown() []Unknown {
	f.unknown.mu.Lock()
	defer f.unknown.mu.Unlock()
	list := slices.Clone(f.unknown.types)
	slices.SortFunc(list, func(a, b Unknown) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// Collector gives the number of such events as a metric.
func (f *Feed) Collector() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "humanqa_unknown_events_total",
		Help: "Events that a newer version of the service wrote and this process does not know, since it started.",
	}, func() float64 {
		f.unknown.mu.Lock()
		defer f.unknown.mu.Unlock()
		return float64(f.unknown.events)
	})
}
