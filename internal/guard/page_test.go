package guard

import (
	"errors"
	"testing"
)

func TestAPageMayHaveAnyPortThatABrowserOpens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		network, address string
		allow            Allow
		ok               bool
	}{
		{"tcp4", "8.8.8.8:80", nil, true},
		{"tcp4", "8.8.8.8:443", nil, true},
		{"tcp4", "8.8.8.8:3000", nil, true},
		{"tcp6", "[2606:4700:4700::1111]:8080", nil, true},
		{"tcp4", "8.8.8.8:22", nil, false},
		{"tcp4", "8.8.8.8:25", nil, false},
		{"tcp4", "8.8.8.8:6667", nil, false},
		{"udp4", "8.8.8.8:443", nil, false},
		{"tcp4", "127.0.0.1:80", nil, false},
		{"tcp4", "10.0.0.1:3000", nil, false},
		{"tcp4", "169.254.169.254:80", nil, false},
		{"tcp6", "[::ffff:127.0.0.1]:80", loopback, false},
		{"tcp4", "127.0.0.1:22", loopback, true},
		{"tcp4", "10.0.0.1:3000", loopback, false},
	} {
		err := PageControl(tt.allow)(tt.network, tt.address, nil)
		if (err == nil) != tt.ok {
			t.Errorf("%s %s with %v: %v, want ok=%v", tt.network, tt.address, tt.allow, err, tt.ok)
		}
		if err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s %s: %v does not wrap ErrBlocked", tt.network, tt.address, err)
		}
	}
}
