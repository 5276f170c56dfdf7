package thirdmonth

import (
	"strings"

	"humanqa/domain/person"
)

// members are the people of the account, who have no id yet.
var members = [Members]Member{
	{Name: "Olga Owner", Role: person.Owner}, {Name: "Dee Developer", Role: person.Developer}, {Name: "Vera Viewer", Role: person.Viewer},
}

// names are those of the projects.
var names = [Projects]string{
	"Shop", "Billing", "Customer portal", "Mobile site", "Booking", "Newsletter", "Partner area", "Checkout API demo",
	"Support desk", "Back office", "Landing pages", "Job board", "Returns", "Gift cards", "Loyalty", "Store finder",
	"Press", "Careers", "Academy", "Events", "Tickets", "Invoices", "Onboarding", "Docs", "Status page", "Blog",
	"Price list", "Configurator", "Catalogue", "Outlet", "Wholesale", "Intranet", "Wiki", "Surveys", "Feedback",
	"Archive", "Old shop", "Campaign 2025", "Prototype", "Playground",
}

func host(n int) string {
	return strings.ReplaceAll(strings.ToLower(names[n]), " ", "-") + ".example.com"
}

func address(n int) string { return "https://" + host(n) + "/" }

var questions = [Asking]string{
	"A code was sent by SMS to the number that ends in 41. What is it?",
	"The invitation asks for a company. Which one may I use?",
}

// check is an item of a checklist, and a request that leads to it.
type check struct{ title, feature, item, expected, seen string }

func (c check) key() string { return strings.ReplaceAll(strings.ToLower(c.title), " ", "-") }

var checks = []check{
	{"Checkout with a voucher", "Put two things into the cart, use the voucher, pay by invoice.",
		"The voucher lowers the total", "The total is 10 % lower before the payment.",
		"The voucher is accepted, but the total stays at 48.00 EUR. After a reload the voucher is gone."},
	{"Pay with a declined card", "Buy the cheapest plan with a card that is declined, then with a good one.",
		"A declined card leads back to the form", "The form is still filled in, and says what is wrong.",
		"The page stays white after the card is declined. Reloading it shows an empty cart."},
	{"Sign up by mail", "Sign up with a new address, confirm it, and sign in again.",
		"The mail of confirmation arrives within a minute", "A mail with a link arrives within a minute.",
		"No mail came within ten minutes, also not in the folder of spam."},
	{"Reset the password", "Forget the password, and choose a new one.",
		"The link of the mail opens once", "The second use of the link is refused.",
		"The link opens a second time, and the password can be changed again."},
	{"Search for a product", "Find a product by a part of its name, and by a typing error.",
		"A typing error still finds the product", "The product is among the first five.",
		"With one wrong letter the list is empty, and no other word is offered."},
	{"Change the address", "Change the address of delivery in the account, then order.",
		"The new address is on the order", "The order shows the new address.",
		"The order still shows the old address. The account shows the new one."},
	{"Book a time", "Book the next free time, move it by a day, and cancel it.",
		"A moved time is free again", "The old time can be booked by others.",
		"The old time stays blocked after the move. A second person could not book it."},
	{"Menu on a phone", "Walk through the menu on a phone, in both directions.",
		"The menu closes after a choice", "The page below is visible after the choice.",
		"The menu stays open over the page. It closes only after a reload."},
	{"Invite a colleague", "Invite a colleague, and accept as that person.",
		"The colleague sees the team's projects", "The list has the three projects of the team.",
		"The list is empty until the colleague signs out and in again."},
	{"Download an invoice", "Open an old order, and download its invoice.",
		"The invoice has the company's name", "The PDF names the company and its number.",
		"The PDF has an empty line where the name of the company belongs."},
	{"Send the form of contact", "Write to support with a picture attached.",
		"A picture of 5 MB can be attached", "The form says that the message was sent.",
		"The button turns for a minute, then an error without a text appears."},
	{"Switch the language", "Switch to German and back, on each page of the account.",
		"Dates follow the language", "Dates are written as in the chosen language.",
		"Dates stay English after the switch, on the list of orders only."},
}
