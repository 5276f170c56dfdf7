package erase

import (
	"fmt"
	"slices"
	"testing"
)

func TestTheSameWordsInManyTestsAreALineForEachTable(t *testing.T) {
	t.Parallel()
	places := []Place{{Where: "table readmodel.items", Count: 2}, {Where: "log", Of: "job-1", Count: 1}}
	for n := range 1000 {
		places = append(places, Place{Where: "table readmodel.jobs", Of: fmt.Sprintf("job-%d", n), Count: 2})
	}
	got := Lines(places)
	want := []string{
		"log, of job-1: 1", "table readmodel.items: 2", "table readmodel.jobs, of job-0, of job-1, of job-2, and of 997 more: 2000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Hosted tests of one address have one title.
func TestTheNoticeOfAnotherTestWithTheSameTitleIsNotTheSubjects(t *testing.T) {
	t.Parallel()
	j := &Job{id: "j1"}
	for path, want := range map[string]bool{
		"/dashboard/jobs/j1": true, "/dashboard/jobs/j1#question": true, "/dashboard/jobs/j12": false, "/dashboard/jobs/j2#question": false,
		"/dashboard/credits": false,
	} {
		if _, own := j.owns("mail.notices", map[string]any{"title": "Hosted test of example.com", "path": path}); own != want {
			t.Errorf("the notice of %s is the subject's: %v", path, own)
		}
	}
}
