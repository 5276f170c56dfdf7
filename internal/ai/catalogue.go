package ai

import (
	"slices"
	"strings"

	"humanqa/domain/job"
)

// item is an entry of the catalogue. A change of its description changes its key, and
// then earlier tests of a project are no longer compared with it.
type item struct {
	description string
	expected    string
	severity    job.Severity
}

// topic is a part of an app that a brief, or an item, may speak of.
type topic struct {
	label string
	// stems match words that start with them; a stem of two words matches two
	// neighbours; a stem that ends in "." matches that word alone.
	stems []string
	fix   string // of one check of a review; no advice fits every failure of a topic
	items []item
}

func (t topic) matches(words []string) bool {
	for _, stem := range t.stems {
		first, second, pair := strings.Cut(stem, " ")
		for i, word := range words {
			switch {
			case !pair && wordMatches(word, first):
				return true
			case pair && word == first && i+1 < len(words) && wordMatches(words[i+1], second):
				return true
			}
		}
	}
	return false
}

func wordMatches(word, stem string) bool {
	if exact, ok := strings.CutSuffix(stem, "."); ok {
		return word == exact
	}
	return strings.HasPrefix(word, stem)
}

// general stands for an item that no topic matches.
var general = topic{label: "General"}

// firstTopic is the first topic that the words speak of, or general.
func firstTopic(words []string) topic {
	for _, t := range topics {
		if t.matches(words) {
			return t
		}
	}
	return general
}

// security is a topic of reviews alone: it takes no person to look at it.
const security = "Security"

// The topics, most costly failure first: a list that is cut keeps the head.
var topics = []topic{
	{
		label: "Payment",
		stems: []string{"pay.", "paying", "payment", "paid.", "checkout", "check out", "billing", "invoice", "subscri", "purchas", "buy.",
			"stripe", "paypal", "credit card", "refund", "upgrade", "pricing"},
		items: paymentItems,
	},
	{
		label: "Sign-in",
		stems: []string{"login", "logins", "log in", "logon", "logout", "log out", "signin", "sign in", "sign on", "signup", "sign up",
			"register", "registration", "auth.", "authent", "oauth", "sso.", "password", "account.", "accounts.", "2fa.", "otp."},
		items: signInItems,
	},
	{
		label: "Cart",
		stems: []string{"cart.", "carts.", "basket", "shop.", "shopping", "store.", "storefront", "product", "order.", "orders.",
			"ordering", "coupon", "voucher", "discount"},
		items: []item{
			{"Add two different products to the cart, change a quantity and remove one of them.",
				"The cart and its total follow each change at once.", job.Critical},
			{"Fill the cart, leave the page, reload and come back.", "The cart still holds what was put into it.", job.Major},
		},
	},
	{
		label: "Forms",
		stems: []string{"form.", "forms.", "contact.", "submit", "survey", "questionnaire", "application.", "booking", "book.",
			"appointment", "reserv", "newsletter", "feedback", "onboarding", "wizard"},
		items: formItems,
	},
	{
		label: "Upload",
		stems: []string{"upload", "attach", "file.", "files.", "import", "drag", "avatar", "photo", "picture", "image", "csv."},
		items: []item{
			{"Upload a small file of a kind the page asks for, then open it from where it is shown.",
				"The upload shows its progress, ends with a confirmation, and the file opens unchanged.", job.Major},
			{"Upload a file of a wrong kind and one that is too large.",
				"Each is refused with a message that says what is allowed; nothing else on the page is lost.", job.Major},
		},
	},
	{
		label: "Search",
		stems: []string{"search", "find.", "filter", "sort.", "sorting", "catalog", "browse", "listing", "directory"},
		items: []item{
			{"Search for a word that is on the site, then for one that surely is not.",
				"The first gives matching results; the second says that nothing was found and how to go on.", job.Major},
			{"Combine two filters or a filter and a sort order, open a result and go back.",
				"Only matching entries are shown, and going back keeps the choice.", job.Minor},
		},
	},
	{
		label: "Mobile",
		stems: []string{"mobile", "phone", "iphone", "ipad", "android", "ios.", "tablet", "responsive", "touch", "viewport",
			"small screen"},
		items: mobileItems,
	},
	{
		label: "Navigation",
		stems: []string{"navig", "menu", "link.", "links.", "header", "footer", "sidebar", "breadcrumb", "tab.", "tabs.", "landing",
			"homepage", "home page", "route", "routing"},
		items: []item{navigationItem, backItem},
	},
	{
		label: "Accessibility",
		stems: []string{"accessib", "a11y.", "wcag.", "aria.", "keyboard", "screen reader", "screenreader", "contrast"},
		items: []item{
			keyboardItem,
			{"Zoom the page to 200 % and read it.", "All text stays readable and nothing is cut off or overlaps.", job.Major},
			{"Look at texts, icons and buttons over their backgrounds, and at fields that show an error.",
				"Everything is easy to tell apart, and no meaning is carried by colour alone.", job.Minor},
		},
	},
	{
		label: "Messages",
		stems: []string{"email", "e mail", "mail.", "notif", "chat", "message", "messaging", "comment", "invite", "invitation", "share",
			"sharing"},
		items: []item{
			{"Send a message, comment or invitation, then look at it from the receiving side as far as you can.",
				"It arrives once, with the text as it was written.", job.Major},
		},
	},
	{
		label: "Dashboard",
		stems: []string{"dashboard", "chart", "graph.", "graphs.", "report.", "reports.", "analytic", "statistic", "table.", "export"},
		items: []item{
			{"Compare the figures of an overview with the entries they are made from.",
				"They agree, and dates, currencies and units are labelled.", job.Major},
			{"Change the period or another setting of a chart or table.",
				"It follows within a few seconds, with a sign that it is loading.", job.Minor},
		},
	},
	{
		label: "Speed",
		stems: []string{"performance", "slow.", "slowly", "speed", "latency", "lag.", "laggy", "loading", "load time"},
		items: []item{
			{"Open the main pages one after the other on a usual connection.",
				"Each shows its main content within three seconds and can be used at once.", job.Major},
			{"Start the slowest action that you find and watch the page meanwhile.",
				"It says that it is working, does not freeze, and ends with a result.", job.Minor},
		},
	},
	{
		label: "Settings",
		stems: []string{"setting", "profile", "preference", "configur", "language.", "languages.", "translat", "dark mode", "theme"},
		items: []item{
			{"Change a setting, save it, reload the page.", "The change is confirmed and still there after the reload.", job.Major},
		},
	},
}

var paymentItems = []item{
	{"Go through the payment from the first step up to the last one before money moves; with test data given, complete it.",
		"Every step leads to the next one, and the end is a clear confirmation.", job.Critical},
	{"Compare price, tax and total on every page of the payment.",
		"The amount and the currency are the same everywhere, with no cost that appears late.", job.Critical},
	{"Try to pay with an impossible card number, an expired date and an empty field.",
		"Each is refused with a message beside the field; nothing is charged and the rest stays filled in.", job.Critical},
	{"Leave the payment half-way with the back button, and press the pay button twice quickly.",
		"No double order or charge arises, and the payment can be started again.", job.Major},
}

var signInItems = []item{
	{"Sign in with the given account, or sign up for a new one.", "You get in and land where a signed-in user expects to be.",
		job.Critical},
	{"Try to sign in with a wrong password, then with an empty field.",
		"Both are refused with a clear message that does not tell whether the account exists.", job.Major},
	{"Sign out, then press the browser's back button and reload.", "Nothing of the account is shown any more.", job.Major},
	{"Ask for a new password.", "The page says what happens next, for a known address and an unknown one alike.", job.Major},
}

var formItems = []item{
	{"Fill in the form with sensible values and submit it.", "A confirmation says that it arrived and what happens next.", job.Critical},
	{"Submit the form empty, then with a malformed e-mail address, number or date.",
		"Each wrong field has its own message, and what was typed is kept.", job.Major},
	{"Type very long text, emoji and letters such as é, ß and 漢 into the fields.",
		"They are taken and shown as typed, or refused with a message.", job.Minor},
}

var mobileItems = []item{
	{"Open the main pages on a phone, or in a window 375 pixels wide.",
		"Everything fits without scrolling sideways, and no text or button is cut off.", job.Critical},
	{"Open the menu on a phone and reach each of its entries.", "It opens and closes by touch, and each entry is large enough to hit.",
		job.Major},
	{"Turn the phone to landscape and back on a page with input.", "The page adapts and what was typed is kept.", job.Minor},
}

var (
	loadItem = item{"Open the page in a fresh private window.", "It shows its main content within a few seconds, without an error.",
		job.Critical}

	mainItem = item{"Do the main thing that this app is for, once, from start to end.", "It succeeds, and you know that it did.",
		job.Critical}

	navigationItem = item{"Follow every link of the main menu and the footer.", "Each leads to the page it names; none is dead.", job.Major}

	backItem = item{"Go three pages deep, then use the browser's back and forward buttons and reload.",
		"You see the pages you came from, in order, and nothing breaks.", job.Minor}

	keyboardItem = item{"Put the mouse aside and reach the main controls with the Tab and Enter keys.",
		"Each can be reached and used, and it is always visible where you are.", job.Minor}

	narrowItem = item{"Make the window as narrow as a phone.", "The page stays readable and usable without scrolling sideways.", job.Major}

	wordingItem = item{"Read the texts of the main pages.", "There are no placeholder texts, broken images, or gross spelling mistakes.",
		job.Minor}

	unknownItem = item{"Open an address of this site that does not exist.", "A helpful page says so and leads back.", job.Minor}
)

// basics hold for every app; they fill a list that has little to go by.
var basics = []item{loadItem, mainItem, navigationItem, narrowItem, wordingItem, keyboardItem, unknownItem}

var byType = map[job.Type][]item{
	job.FirstImpression: {
		loadItem,
		{"Look at the first screen for ten seconds, then say what the app is for and what to do next.", "Both are clear without scrolling.",
			job.Major},
		{"Follow the most prominent button or link of the first screen.", "It leads where its words promise.", job.Critical},
		wordingItem,
		narrowItem,
	},
	job.GeneralQA:   {loadItem, mainItem, navigationItem},
	job.PaymentFlow: paymentItems,
	job.AuthFlow:    signInItems,
	job.FormSubmission: append(slices.Clone(formItems),
		item{"Press the submit button twice quickly.", "The form arrives once.", job.Major}),
	job.MobileResponsive: mobileItems,
	job.FullUserStory: {
		{"Start as a new visitor and follow the described story to its end.", "Each step can be done without help, in the described order.",
			job.Critical},
		{"Break the story off half-way, reload, and go on.", "Nothing that was entered is lost without a warning.", job.Major},
		{"At the end, look for what the story has left behind.", "Its result is where a customer would look for it, and it is right.",
			job.Critical},
	},
	job.Custom: {loadItem, mainItem},
}

// topicByKey gives the topics of the catalogue's own items, since their words could match
// a wrong topic.
var topicByKey = func() map[string]topic {
	known := make(map[string]topic)
	for _, i := range basics {
		known[job.ReadableKey(i.description)] = general
	}
	for _, c := range checks {
		known[c.key] = topic{label: c.topic, fix: c.fix}
	}
	for _, t := range topics {
		for _, i := range t.items {
			known[job.ReadableKey(i.description)] = t
		}
	}
	return known
}()

// topicOf is the first topic that a report's item speaks of, or general.
func topicOf(i job.ReportItem) topic {
	if t, ok := topicByKey[i.Key]; ok {
		return t
	}
	return firstTopic(wordsOf(i.Description, i.ExpectedOutcome))
}
