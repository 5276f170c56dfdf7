package ai

import (
	"slices"
	"strings"
)

// topic is a part of an app that a brief may speak of.
type topic struct {
	name string
	// stems match words that start with them; a stem of two words matches two
	// neighbours; a stem that ends in "." matches that word alone.
	stems []string
	items []Item
}

func (t topic) matches(words []string) bool {
	for _, stem := range t.stems {
		first, second, pair := strings.Cut(stem, " ")
		if slices.ContainsFunc(indices(words), func(i int) bool {
			if !pair {
				return wordMatches(words[i], first)
			}
			return words[i] == first && i+1 < len(words) && wordMatches(words[i+1], second)
		}) {
			return true
		}
	}
	return false
}

func indices(words []string) []int {
	all := make([]int, len(words))
	for i := range all {
		all[i] = i
	}
	return all
}

func wordMatches(word, stem string) bool {
	if exact, ok := strings.CutSuffix(stem, "."); ok {
		return word == exact
	}
	return strings.HasPrefix(word, stem)
}

// The topics, most costly failure first: a list that is cut keeps the head.
var topics = []topic{
	{
		name:  "payment",
		stems: []string{"pay.", "paying", "payment", "paid.", "checkout", "check out", "billing", "invoice", "subscri", "purchas", "buy.", "stripe", "paypal", "credit card", "refund", "upgrade", "pricing"},
		items: paymentItems,
	},
	{
		name:  "sign-in",
		stems: []string{"login", "logins", "log in", "logon", "logout", "log out", "signin", "sign in", "sign on", "signup", "sign up", "register", "registration", "auth.", "authent", "oauth", "sso.", "password", "account.", "accounts.", "2fa.", "otp."},
		items: signInItems,
	},
	{
		name:  "cart",
		stems: []string{"cart.", "carts.", "basket", "shop.", "shopping", "store.", "storefront", "product", "order.", "orders.", "ordering", "coupon", "voucher", "discount"},
		items: []Item{
			{"Add two different products to the cart, change a quantity and remove one of them.", "The cart and its total follow each change at once.", "critical"},
			{"Fill the cart, leave the page, reload and come back.", "The cart still holds what was put into it.", "major"},
		},
	},
	{
		name:  "forms",
		stems: []string{"form.", "forms.", "contact.", "submit", "survey", "questionnaire", "application.", "booking", "book.", "appointment", "reserv", "newsletter", "feedback", "onboarding", "wizard"},
		items: formItems,
	},
	{
		name:  "upload",
		stems: []string{"upload", "attach", "file.", "files.", "import", "drag", "avatar", "photo", "picture", "image", "csv."},
		items: []Item{
			{"Upload a small file of a kind the page asks for, then open it from where it is shown.", "The upload shows its progress, ends with a confirmation, and the file opens unchanged.", "major"},
			{"Upload a file of a wrong kind and one that is too large.", "Each is refused with a message that says what is allowed; nothing else on the page is lost.", "major"},
		},
	},
	{
		name:  "search",
		stems: []string{"search", "find.", "filter", "sort.", "sorting", "catalog", "browse", "listing", "directory"},
		items: []Item{
			{"Search for a word that is on the site, then for one that surely is not.", "The first gives matching results; the second says that nothing was found and how to go on.", "major"},
			{"Combine two filters or a filter and a sort order, open a result and go back.", "Only matching entries are shown, and going back keeps the choice.", "minor"},
		},
	},
	{
		name:  "mobile",
		stems: []string{"mobile", "phone", "iphone", "ipad", "android", "ios.", "tablet", "responsive", "touch", "viewport", "small screen"},
		items: mobileItems,
	},
	{
		name:  "navigation",
		stems: []string{"navig", "menu", "link.", "links.", "header", "footer", "sidebar", "breadcrumb", "tab.", "tabs.", "landing", "homepage", "home page", "route", "routing"},
		items: []Item{navigationItem, backItem},
	},
	{
		name:  "accessibility",
		stems: []string{"accessib", "a11y.", "wcag.", "aria.", "keyboard", "screen reader", "screenreader", "contrast"},
		items: []Item{
			keyboardItem,
			{"Zoom the page to 200 % and read it.", "All text stays readable and nothing is cut off or overlaps.", "major"},
			{"Look at texts, icons and buttons over their backgrounds, and at fields that show an error.", "Everything is easy to tell apart, and no meaning is carried by colour alone.", "minor"},
		},
	},
	{
		name:  "messages",
		stems: []string{"email", "e mail", "mail.", "notif", "chat", "message", "messaging", "comment", "invite", "invitation", "share", "sharing"},
		items: []Item{
			{"Send a message, comment or invitation, then look at it from the receiving side as far as you can.", "It arrives once, with the text as it was written.", "major"},
		},
	},
	{
		name:  "dashboard",
		stems: []string{"dashboard", "chart", "graph.", "graphs.", "report.", "reports.", "analytic", "statistic", "table.", "export"},
		items: []Item{
			{"Compare the figures of an overview with the entries they are made from.", "They agree, and dates, currencies and units are labelled.", "major"},
			{"Change the period or another setting of a chart or table.", "It follows within a few seconds, with a sign that it is loading.", "minor"},
		},
	},
	{
		name:  "settings",
		stems: []string{"setting", "profile", "preference", "configur", "language.", "languages.", "translat", "dark mode", "theme"},
		items: []Item{
			{"Change a setting, save it, reload the page.", "The change is confirmed and still there after the reload.", "major"},
		},
	},
}

var paymentItems = []Item{
	{"Go through the payment from the first step up to the last one before money moves; with test data given, complete it.", "Every step leads to the next one, and the end is a clear confirmation.", "critical"},
	{"Compare price, tax and total on every page of the payment.", "The amount and the currency are the same everywhere, with no cost that appears late.", "critical"},
	{"Try to pay with an impossible card number, an expired date and an empty field.", "Each is refused with a message beside the field; nothing is charged and the rest stays filled in.", "critical"},
	{"Leave the payment half-way with the back button, and press the pay button twice quickly.", "No double order or charge arises, and the payment can be started again.", "major"},
}

var signInItems = []Item{
	{"Sign in with the given account, or sign up for a new one.", "You get in and land where a signed-in user expects to be.", "critical"},
	{"Try to sign in with a wrong password, then with an empty field.", "Both are refused with a clear message that does not tell whether the account exists.", "major"},
	{"Sign out, then press the browser's back button and reload.", "Nothing of the account is shown any more.", "major"},
	{"Ask for a new password.", "The page says what happens next, for a known address and an unknown one alike.", "major"},
}

var formItems = []Item{
	{"Fill in the form with sensible values and submit it.", "A confirmation says that it arrived and what happens next.", "critical"},
	{"Submit the form empty, then with a malformed e-mail address, number or date.", "Each wrong field has its own message, and what was typed is kept.", "major"},
	{"Type very long text, emoji and letters such as é, ß and 漢 into the fields.", "They are taken and shown as typed, or refused with a message.", "minor"},
}

var mobileItems = []Item{
	{"Open the main pages on a phone, or in a window 375 pixels wide.", "Everything fits without scrolling sideways, and no text or button is cut off.", "critical"},
	{"Open the menu on a phone and reach each of its entries.", "It opens and closes by touch, and each entry is large enough to hit.", "major"},
	{"Turn the phone to landscape and back on a page with input.", "The page adapts and what was typed is kept.", "minor"},
}

var (
	loadItem = Item{"Open the page in a fresh private window.", "It shows its main content within a few seconds, without an error.", "critical"}

	mainItem = Item{"Do the main thing that this app is for, once, from start to end.", "It succeeds, and you know that it did.", "critical"}

	navigationItem = Item{"Follow every link of the main menu and the footer.", "Each leads to the page it names; none is dead.", "major"}

	backItem = Item{"Go three pages deep, then use the browser's back and forward buttons and reload.", "You see the pages you came from, in order, and nothing breaks.", "minor"}

	keyboardItem = Item{"Put the mouse aside and reach the main controls with the Tab and Enter keys.", "Each can be reached and used, and it is always visible where you are.", "minor"}

	narrowItem = Item{"Make the window as narrow as a phone.", "The page stays readable and usable without scrolling sideways.", "major"}

	wordingItem = Item{"Read the texts of the main pages.", "There are no placeholder texts, broken images, or gross spelling mistakes.", "minor"}

	unknownItem = Item{"Open an address of this site that does not exist.", "A helpful page says so and leads back.", "minor"}
)

// basics hold for every app; they fill a list that has little to go by.
var basics = []Item{loadItem, mainItem, navigationItem, narrowItem, wordingItem, keyboardItem, unknownItem}

var byType = map[string][]Item{
	"first_impression": {
		loadItem,
		{"Look at the first screen for ten seconds, then say what the app is for and what to do next.", "Both are clear without scrolling.", "major"},
		{"Follow the most prominent button or link of the first screen.", "It leads where its words promise.", "critical"},
		wordingItem,
		narrowItem,
	},
	"general_qa":   {loadItem, mainItem, navigationItem},
	"payment_flow": paymentItems,
	"auth_flow":    signInItems,
	"form_submission": append(slices.Clone(formItems),
		Item{"Press the submit button twice quickly.", "The form arrives once.", "major"}),
	"mobile_responsive": mobileItems,
	"full_user_story": {
		{"Start as a new visitor and follow the described story to its end.", "Each step can be done without help, in the described order.", "critical"},
		{"Break the story off half-way, reload, and go on.", "Nothing that was entered is lost without a warning.", "major"},
		{"At the end, look for what the story has left behind.", "Its result is where a customer would look for it, and it is right.", "critical"},
	},
	"custom":    {loadItem, mainItem},
	"ai_review": {loadItem, wordingItem, navigationItem, keyboardItem},
}
