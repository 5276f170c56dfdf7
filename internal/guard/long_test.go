package guard

import (
	"strings"
	"testing"
)

// Read models have the host in an index, whose entries are bounded.
func TestAHostIsNoLongerThanAName(t *testing.T) {
	t.Parallel()
	ignored := strings.Repeat("\u00ad\u200b\U000e0100\U000e01ef", 500) // no lookup sees any of it
	for _, url := range []string{
		"https://" + ignored + "shop.example.com/",
		"https://shop" + ignored + ".example.com/",
		"https://shop.example.com:" + strings.Repeat("0", 1000) + "443/",
	} {
		if err := TargetURL(url, Targets{}); err == nil {
			t.Errorf("%.40q… passes", url)
		}
		if err := WebhookURL(url, nil); err == nil {
			t.Errorf("%.40q… passes as a webhook", url)
		}
	}
	if err := TargetURL("https://sho\u00adp.example.com:8443/", Targets{}); err != nil {
		t.Errorf("an invisible hyphen: %v", err)
	}
}
