package openapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"humanqa/domain/announce"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/must"
)

// What is announced stands in one catalogue; the document shows all of it and
// nothing else, and says which kinds a list may not name.
func TestTheDocumentShowsWhatIsAnnounced(t *testing.T) {
	t.Parallel()
	var doc struct {
		Webhooks map[string]struct {
			Post struct{ Description string }
		} `json:"x-webhooks"`
		Components struct {
			Schemas struct {
				EventName struct{ Enum []string }
			}
		}
	}
	must.NoError(t, json.Unmarshal(Document(), &doc))
	for _, k := range announce.Kinds() {
		hook, shown := doc.Webhooks[k.Name]
		if !shown {
			t.Errorf("the document does not show %s", k.Name)
		}
		if unnamed := strings.Contains(hook.Post.Description, "only while the list of events was never set"); shown && unnamed == (k.Subscribable || k.Nameable || k.Listed || k.OfAccount) {
			t.Errorf("%s can be subscribed to: %t, and the document says: %s", k.Name, k.Subscribable, hook.Post.Description)
		}
		delete(doc.Webhooks, k.Name)
	}
	delete(doc.Webhooks, announce.TestName) // asked for, not announced
	for name := range doc.Webhooks {
		t.Errorf("the document shows %s, which is not announced", name)
	}
	if got := doc.Components.Schemas.EventName.Enum; !slices.Equal(got, subscription.Names()) {
		t.Errorf("EventName is one of %q, a list may name %q", got, subscription.Names())
	}
}
