// Package ui is the frame of all pages: the table of pages, the session of the person,
// the layout, the assets, and live updates. The pages themselves are in the packages
// beside it (signin, dashboard, workbench, room, console).
//
// # Pages
//
// A page is HTML that Go renders, and it works without a script. A form is posted, and
// answered by a redirect. It carries the id of its command, so a form that is sent
// twice has one effect. Each package has one table of pages with their roles, and a
// test walks it. Pages issue commands and read queries directly. A bearer key means
// nothing here, and a cookie means nothing under /v1.
//
// A page's template is what a browser gets, but for the page's own ETag, which is known
// last. The template also shows a refused form again (Frame.Form): the values that were
// sent, each error at its field, and the focus at the first. Each cell of a table has the
// name of its column (data-label), which a phone shows.
//
// # Live updates
//
// A script only adds. An open page names its streams. When one of them changes
// (projections/changes), the browser fetches the page's own URL again and morphs into
// the answer. So a live page and a reloaded one cannot differ. The more browsers watch
// one account, the later each is told, so a busy account with many viewers stays cheap
// (watchers.go). Each stream checks and reconnects at a moment of its own.
//
// # Assets
//
// The content security policy allows our own scripts only, and no text becomes code
// (Trusted Types). make assets bundles the scripts and styles from assets/src, and the
// bundles are committed. Nothing needs node. internal/testing/browsertest inspects
// every page with a real browser.
package ui

// The order of a request (site.go): headers, refusal of cross-site POSTs, session,
// role, rate, form, handler. A visitor without a session is led to sign in. A person
// without the right to a page gets "not found", so no id can be tried out.
