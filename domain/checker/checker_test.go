package checker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[checker.State]

func given(t *testing.T, events ...domain.Event) *scenario.Given[checker.State] {
	return scenario.New(t, checker.Evolve, events...)
}

func ann() checker.Created {
	return checker.Created{Name: "Ann", Hash: "aa", Prefix: "qc_1", Accounts: []string{"acme"}}
}

func created() domain.Event { c := ann(); return &c }

func reserve(jobID string) checker.Reservation {
	return checker.Reservation{JobID: jobID, Token: 2, At: time.Unix(1_800_000_000, 0).UTC()}
}

func took(jobIDs ...string) domain.Event {
	e := new(checker.ClaimTaken)
	for _, id := range jobIDs {
		e.Held = append(e.Held, reserve(id))
	}
	return e
}

func create(c checker.Created) decide {
	return func(s checker.State) ([]domain.Event, error) { return checker.DecideCreate(s, c) }
}

// take reserves a job for a checker with that many places who really holds the
// live ones.
func take(jobID string, limit int, live ...string) decide {
	return func(s checker.State) ([]domain.Event, error) {
		return checker.DecideTake(s, reserve(jobID), func(r checker.Reservation) bool {
			return slices.Contains(live, r.JobID)
		}, limit)
	}
}

func TestACheckerIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	given(t).When(create(ann())).Events(created())
	given(t).When(create(checker.Created{Name: " ", Hash: "aa"})).Invalid("name")
	given(t, created()).When(create(checker.Created{Name: "Ann", Hash: "bb"})).Conflict("the checker exists already")
}

func TestACheckerIsOnePersonForGood(t *testing.T) {
	t.Parallel()
	bind := func(personID string) decide {
		return func(s checker.State) ([]domain.Event, error) { return checker.DecideBind(s, personID) }
	}
	given(t).When(bind("p1")).NotFound("checker")
	given(t, created()).When(bind("p1")).Events(&checker.Bound{PersonID: "p1"}).When(bind("p2")).Conflict("the checker is another person")
}

func TestAReservation(t *testing.T) {
	t.Parallel()
	t.Run("takes a free place", func(t *testing.T) {
		given(t, created()).When(take("j1", 1)).Events(took("j1"))
	})
	t.Run("is refused when every place is taken", func(t *testing.T) {
		e := given(t, created(), took("j1")).When(take("j2", 1, "j1")).Conflict("the checker holds 1 of 1 claims")
		if got, _ := e.Extras["claimedJobs"].([]string); !slices.Equal(got, []string{"j1"}) {
			t.Errorf("the refusal names %v", e.Extras)
		}
	})
	t.Run("is not counted once its job went elsewhere", func(t *testing.T) {
		given(t, created(), took("j1")).When(take("j2", 1)).Events(took("j2"))
	})
	t.Run("stands beside the live ones, oldest first", func(t *testing.T) {
		given(t, created(), took("j1", "j2", "j3")).When(take("j4", 3, "j1", "j3")).Events(took("j1", "j3", "j4"))
	})
	t.Run("replaces an earlier one of the same job", func(t *testing.T) {
		given(t, created(), took("j1", "j2")).When(take("j1", 2, "j1", "j2")).Events(took("j2", "j1"))
	})
	t.Run("needs a known checker", func(t *testing.T) {
		given(t).When(take("j1", 1)).NotFound("checker")
	})
}

func TestAProfileIsTidy(t *testing.T) {
	t.Parallel()
	made := &checker.Created{Name: "ann", Hash: "h"}
	says := func(languages, devices []string) scenario.Decide[checker.State] {
		return func(s checker.State) ([]domain.Event, error) {
			return checker.DecideProfile(s, checker.Profiled{Languages: languages, Devices: devices})
		}
	}
	want := &checker.Profiled{Languages: []string{"English", "Deutsch"}, Devices: []string{"iPhone 15, iOS 18"}}
	scenario.New(t, checker.Evolve, made).When(says([]string{" English ", "", "english", "Deutsch"}, []string{"iPhone 15, iOS 18"})).Events(want).
		When(says([]string{"English", "Deutsch"}, []string{"iPhone 15, iOS 18"})).Nothing()
	scenario.New(t, checker.Evolve, made, want).When(says(nil, nil)).Events(&checker.Profiled{Languages: []string{}, Devices: []string{}})
	scenario.New(t, checker.Evolve).When(says(nil, nil)).NotFound("checker")
	many := make([]string, 21)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	scenario.New(t, checker.Evolve, made).When(says(many, []string{strings.Repeat("x", 81)})).Invalid("languages", "devices")
	scenario.New(t, checker.Evolve, made).When(says(nil, []string{"a\x00b"})).Invalid("devices")
}
