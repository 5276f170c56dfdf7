package job_test

import (
	"testing"

	"humanqa/domain/job"
)

func TestATypeIsDetectedFromTheWordsAndThePast(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.example/"
	for _, c := range []struct {
		url, feature string
		tested       bool
		want         job.Type
	}{
		{shop, "", false, job.FirstImpression},
		{shop, " \n", false, job.FirstImpression},
		{shop, "", true, job.GeneralQA},
		{shop, "the search", false, job.GeneralQA},
		{shop, "the search", true, job.GeneralQA},

		{shop, "Checkout with a coupon", false, job.PaymentFlow},
		{shop, "the PAYMENT page", true, job.PaymentFlow},
		{shop, "pay by credit card", true, job.PaymentFlow},
		{shop, "a credit card is refused", true, job.PaymentFlow},
		{shop, "subscriptions", true, job.PaymentFlow},
		{shop + "checkout?step=2", "", false, job.PaymentFlow},
		{shop + "%63heckout", "the search", true, job.PaymentFlow},
		{"https://pay.shop.example/", "", false, job.PaymentFlow},

		{shop, "check out the new menu", true, job.GeneralQA},
		{shop, "the payload of the form", true, job.GeneralQA},
		{shop, "subscribe to the newsletter", true, job.GeneralQA},
		{shop + "business-card", "credits", true, job.GeneralQA},
		{shop + "%zz", "", false, job.FirstImpression},
	} {
		if got := job.Detect(c.url, c.feature, c.tested); got != c.want {
			t.Errorf("%s, %q, tested %t: got %s, want %s", c.url, c.feature, c.tested, got, c.want)
		}
	}
}

func TestATypesTitleIsReadBackAsTheType(t *testing.T) {
	t.Parallel()
	for _, code := range job.Types() {
		if got, ok := job.ParseType(code.Title()); !ok || got != code {
			t.Errorf("%s has the title %q, which reads %s", code, code.Title(), got)
		}
	}
	for code, want := range map[job.Type]string{
		job.FirstImpression: "First Impression", job.GeneralQA: "General QA", job.PaymentFlow: "Payment Flow",
		job.Custom: "Custom", job.AIReview: "AI Review",
	} {
		if got := code.Title(); got != want {
			t.Errorf("%s has the title %q, want %q", code, got, want)
		}
	}
}
