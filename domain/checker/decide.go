package checker

import (
	"slices"
	"strings"
	"unicode"

	"humanqa/domain"
	"humanqa/domain/identity"
)

// DecideCreate registers the checker. Asking again with the same key is a
// repeat.
func DecideCreate(s State, c Created) ([]domain.Event, error) {
	switch {
	case s.Exists && s.Hash == c.Hash:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the checker exists already")
	case strings.TrimSpace(c.Name) == "":
		return nil, domain.InvalidAt("name", "must not be blank")
	}
	return []domain.Event{&c}, nil
}

// DecideBind says which person works as the checker.
func DecideBind(s State, personID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("checker")
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	case s.PersonID == personID:
		return nil, nil
	case s.PersonID != "":
		return nil, domain.Conflict("the checker is another person")
	}
	return []domain.Event{&Bound{PersonID: personID}}, nil
}

// The bounds of a profile.
const (
	maxEntries = 20
	maxEntry   = 80 // characters
)

// DecideProfile records the checker's own profile. It removes blanks around an entry,
// empty entries and duplicates.
func DecideProfile(s State, p Profiled) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("checker")
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	}
	var wrong domain.Wrong
	tidy := func(path string, entries []string) []string {
		kept := []string{}
		for _, e := range entries {
			e = strings.TrimSpace(e)
			switch {
			case e == "" || slices.ContainsFunc(kept, func(k string) bool { return identity.Fold(k) == identity.Fold(e) }):
				continue
			case len([]rune(e)) > maxEntry || strings.ContainsFunc(e, unicode.IsControl):
				wrong.Add(path, "must have entries of 80 characters at most, all of which can be seen")
			}
			kept = append(kept, e)
		}
		wrong.AddIf(len(kept) > maxEntries, path, "must have 20 entries at most")
		return kept
	}
	p.Languages, p.Devices = tidy("languages", p.Languages), tidy("devices", p.Devices)
	if err := wrong.Refusal(); err != nil || slices.Equal(p.Languages, s.Languages) && slices.Equal(p.Devices, s.Devices) {
		return nil, err
	}
	return []domain.Event{&p}, nil
}

// DecideTake reserves one of the checker's limit places for a job. live reports whether
// an earlier reservation still stands for a claim. DecideTake drops the others, and an
// earlier reservation of the same job.
func DecideTake(s State, take Reservation, live func(Reservation) bool, limit int) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("checker")
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	}
	if n := len(s.Held); n > 0 && s.Held[n-1] == take {
		return nil, nil
	}
	held := make([]Reservation, 0, len(s.Held)+1)
	jobs := make([]string, 0, len(s.Held))
	for _, r := range s.Held {
		if r.JobID != take.JobID && live(r) {
			held = append(held, r)
			jobs = append(jobs, r.JobID)
		}
	}
	if len(held) >= limit {
		return nil, domain.Conflict("the checker holds %d of %d claims", len(held), limit).
			WithHint("complete or release the claimed job first").
			With("claimedJobs", jobs)
	}
	return []domain.Event{&ClaimTaken{Held: append(held, take)}}, nil
}
