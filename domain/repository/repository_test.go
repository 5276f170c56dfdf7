package repository

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
)

// note is an event with a text; a stream of notes folds to its texts.
func note(text string) domain.Event { return &job.ItemChecked{ItemID: text} }

func notes(state []string, e domain.Event) []string {
	return append(state, e.(*job.ItemChecked).ItemID)
}

// noted writes a text once.
func noted(text string) func([]string) ([]domain.Event, error) {
	return func(state []string) ([]domain.Event, error) {
		if slices.Contains(state, text) {
			return nil, nil
		}
		return []domain.Event{note(text)}, nil
	}
}

// batched has the commands decided in one batch, and gives their answers.
func (s *Repository[S]) batched(stream string, batch ...*queued[S]) (answers []appendResult) {
	w := s.writer(stream)
	w.queue, w.running = batch, true
	s.runWriter(w)
	for _, q := range batch {
		answers = append(answers, <-q.done)
	}
	return answers
}

// Whatever a batch of creations holds, and however often another process writes
// first: it is decided on what the log has.
func TestABatchOfCreationsThatAnotherProcessBeatsIsDecidedOnTheNewState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		beats int // how often the other process writes first
		texts []string
		want  []string
	}{
		{"a repeat behind the one that writes", 1, []string{"a", "a"}, []string{"other 1", "a"}},
		{"several that write", 1, []string{"a", "b", "c"}, []string{"other 1", "a", "b", "c"}},
		{"what the other process has written", 1, []string{"other 1", "other 1"}, []string{"other 1"}},
		{"one, many times", 30, []string{"a"}, nil},
		{"several, many times", 30, []string{"a", "a", "b"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log, stream := logtest.New(), domain.JobStream(uuid.NewString())
			want := c.want
			if want == nil {
				for i := range c.beats {
					want = append(want, fmt.Sprint("other ", i+1))
				}
				want = slices.Compact(append(want, c.texts...))
			}
			beaten := 0
			log.Before(func(string) {
				if beaten < c.beats {
					beaten++
					log.Record(stream, note(fmt.Sprint("other ", beaten)))
				}
			})
			var batch []*queued[[]string]
			for _, text := range c.texts {
				batch = append(batch, &queued[[]string]{fresh: true, decide: noted(text), see: func([]string) {}, done: make(chan appendResult, 1)})
			}
			s := New(log, time.Now, 1, notes)
			last := domain.Position{Commit: uint64(len(want)), Prepare: uint64(len(want))}
			for _, got := range s.batched(stream, batch...) {
				if got.err != nil || got.at != last {
					t.Errorf("answered %+v, want %+v", got, last)
				}
			}
			var got []string
			for _, e := range log.Stream(stream) {
				got = notes(got, e.Event)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the stream holds %q, want %q", got, want)
			}
		})
	}
}

// The commands of a batch are written together, and each is answered as if it were alone.
func TestEachCommandOfABatchSeesTheStateBehindItsOwnEvents(t *testing.T) {
	t.Parallel()
	log, stream := logtest.New(), domain.JobStream(uuid.NewString())
	log.Record(stream, note("first"))
	refusal := domain.Conflict("no")
	var seen [5]string
	var batch []*queued[[]string]
	for i, decide := range []func([]string) ([]domain.Event, error){
		noted("a"), noted("first"), noted("b"), func([]string) ([]domain.Event, error) { return nil, refusal }, noted("c"),
	} {
		batch = append(batch, &queued[[]string]{
			decide: decide, see: func(state []string) { seen[i] = fmt.Sprint(state) }, done: make(chan appendResult, 1),
		})
	}
	for i, got := range New(log, time.Now, 1, notes).batched(stream, batch...) {
		if (i == 3) != errors.Is(got.err, refusal) {
			t.Errorf("command %d is answered with %v", i, got.err)
		}
	}
	if want := [5]string{"[first a]", "[first a]", "[first a b]", "", "[first a b c]"}; seen != want {
		t.Errorf("the commands saw %q, want %q", seen, want)
	}
}
