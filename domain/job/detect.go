package job

import (
	"net/url"
	"slices"
	"strings"

	"humanqa/domain/identity"
)

// Words that speak of money. Those of paymentStems count with any ending;
// words that also mean something else ("check out the menu") are left out.
var (
	paymentWords = []string{"pay", "pays", "paid", "paying", "buy", "buys", "buying", "stripe", "paypal"}
	paymentStems = []string{"payment", "checkout", "billing", "invoic", "subscription", "purchas", "refund"}
	paymentPairs = [][2]string{{"credit", "card"}, {"credit", "cards"}, {"debit", "card"}, {"debit", "cards"}}
)

// Detect finds the type of a hosted test without one. It looks for payment words in the
// feature or the URL, and then for a project's first test (decisions, "Type
// detection").
func Detect(rawURL, feature string, tested bool) Type {
	switch {
	case aboutMoney(feature) || aboutMoney(unescaped(rawURL)):
		return PaymentFlow
	case strings.TrimSpace(feature) == "" && !tested:
		return FirstImpression
	}
	return GeneralQA
}

func aboutMoney(text string) bool {
	words := identity.Words(text)
	for i, word := range words {
		stem := func(stem string) bool { return strings.HasPrefix(word, stem) }
		pair := func(pair [2]string) bool { return i > 0 && words[i-1] == pair[0] && word == pair[1] }
		if slices.Contains(paymentWords, word) || slices.ContainsFunc(paymentStems, stem) || slices.ContainsFunc(paymentPairs, pair) {
			return true
		}
	}
	return false
}

func unescaped(rawURL string) string {
	if text, err := url.PathUnescape(rawURL); err == nil {
		return text
	}
	return rawURL
}
