// Package dashboard is the control plane for people with browsers: the same actions as those of the API, by the same use cases.
// Package web has what every page shares; here are the pages, each of which asks use cases and says what to show.
//
// What somebody may do is decided by the use cases alone. A page leaves out what they would refuse, so that nobody is shown a
// button in vain; the refusal stands all the same.
package dashboard
