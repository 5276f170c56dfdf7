package admit

import (
	"testing"
)

func TestAnAddressIsAHostOrAnIPv6Network(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"@": "unknown", "": "unknown",
	} {
		if got := Address(remote); got != want {
			t.Errorf("%q: got %q, want %q", remote, got, want)
		}
	}
}
