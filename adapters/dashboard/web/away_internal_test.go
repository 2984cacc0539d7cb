package web

import "testing"

func TestBrowsersAreLedAwayByTLSAlone(t *testing.T) {
	for to, may := range map[string]bool{
		"https://login.example.org/authorize?state=a&x=b": true, "https://login.example.org:8443": true,
		"http://login.example.org": false, "//login.example.org": false, "/login": false, "": false, "https:login": false,
		"https:///a":          false,
		"javascript:alert(1)": false, "data:text/html,a": false, "https://somebody@login.example.org": false, "https://a\r\nb": false,
	} {
		if got := secure(to); got != may {
			t.Errorf("%q: %t", to, got)
		}
	}
}
