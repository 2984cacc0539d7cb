// Package browser shows pages to a real browser, as a person sees them, and holds each to what every page has to be.
//
// A test starts a Browser, which ends with it, and opens a Page for each person. A page is used as a person uses it: by the names
// that it gives to its parts, by mouse and keyboard. Whatever it does wrong on the way fails the test, sooner or later: an error
// or a warning in the console, an exception, something that its policy refused, a load that failed and was not announced by
// Expect, an answer that did not come over HTTP/2. Audit looks at what can be seen: see there.
//
//	b := browser.Start(t, roots, origin)
//	p := b.Open(t, origin, browser.Options{})
//	p.Goto("/login")
//	p.Fill("E-mail", "ada@example.org")
//	p.Click("Log in")
//	p.Sees("Databases")
//	p.Audit("databases", browser.Looks...)
//
// Where PGHERD_SCREENSHOTS names a folder, each look of each Audit is kept there as a picture.
package browser
