package credits

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/internal/testing/must"
)

// Whatever the ids are, a close gives back those that it got.
func FuzzJobIDsComeBackFromJSON(f *testing.F) {
	f.Add(uuid.NewString(), uuid.NewString())
	f.Add("job-1", "")
	f.Add(strings.ToUpper(uuid.NewString()), "{"+uuid.NewString()+"}")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, ids := range []JobIDs{{}, {a}, {a, b}, {a, uuid.NewString()}} {
			written, err := json.Marshal(ids)
			must.NoError(t, err)
			plain, err := json.Marshal([]string(ids)) // whatever is no UTF-8 is replaced
			must.NoError(t, err)
			var got, want JobIDs
			must.NoError(t, json.Unmarshal(written, &got))
			must.NoError(t, json.Unmarshal(plain, &want))
			if !slices.Equal(got, want) {
				t.Errorf("%q became %q in %s", ids, got, written)
			}
		}
	})
}

func TestPackedJobIDsAreWholeOnes(t *testing.T) {
	t.Parallel()
	for _, damaged := range []string{`"AAAA"`, `"no base64!"`, `"AA=="`, `7`, `{}`, `[7]`} {
		var ids JobIDs
		if err := json.Unmarshal([]byte(damaged), &ids); err == nil {
			t.Errorf("%s is %q", damaged, ids)
		}
	}
}
