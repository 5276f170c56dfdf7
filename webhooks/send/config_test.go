package send

import (
	"slices"
	"testing"
	"time"
)

// Specification, "Delivery rules" 2 and 4: one request and up to three retries,
// after 1, 10 and 60 seconds; each ends after ten. Every other test sets times
// of its own.
func TestTheTimesOfADeliveryAreTheSpecifications(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if want := []time.Duration{time.Second, 10 * time.Second, 60 * time.Second}; !slices.Equal(c.Retries, want) {
		t.Errorf("retries wait %v, want %v", c.Retries, want)
	}
	if c.Timeout != 10*time.Second {
		t.Errorf("a request ends after %s", c.Timeout)
	}
	if c.Lease <= c.Timeout {
		t.Errorf("a claim of %s ends before its request's %s do", c.Lease, c.Timeout)
	}
}
