package host

import (
	"strings"
	"testing"
)

func TestWhatNoNameServerKnowsIsNoHost(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\U000e0100", 253)
	if got := Of("https://" + long); got != long {
		t.Errorf("a name of 253 characters is %q", got)
	}
	for _, raw := range []string{"https://" + long + "x", "https://a.example:" + strings.Repeat("0", 253)} {
		if got := Of(raw); got != "" {
			t.Errorf("%.30q… has the host %.30q…", raw, got)
		}
	}
}
