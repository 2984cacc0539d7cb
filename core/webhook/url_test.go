package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// refusedURLs is everything that must never become an endpoint, with a word of the reason.
var refusedURLs = map[string][]string{
	"empty": {""},
	"more than 2048": {
		"https://example.com/" + strings.Repeat("a", MaxURLLength), "https://example.com/" + strings.Repeat("ä", 1000),
	},
	"not valid UTF-8": {"https://example.com/\xff", "https://\xc3\x28.com/"},
	"begin with https://": {
		"http://example.com/", "HTTP://example.com", "ftp://example.com/", "ws://example.com/", "wss://example.com/",
		"file:///etc/passwd", "gopher://example.com/", "javascript:alert(1)", "data:text/plain,x", "//example.com/",
		"example.com", "example.com/hook", "/hook", "httpss://example.com", "unix:///run/x.sock", "?x=1", "#f", ".",
	},
	"absolute": {"https:example.com", "https:/example.com", "https:///hook", "https://", "https://?x", "https://#f", "https:"},
	"user name": {
		"https://user@example.com/", "https://user:pass@example.com/", "https://@example.com/", "https://:@example.com/",
		"https://:pass@example.com/", "https://example.com@127.0.0.1/", "https://example.com%40x@evil.test/",
	},
	"space, a control character or a backslash": {
		"https://example.com /", " https://example.com/", "https://example.com/\n", "https://exa\tmple.com/",
		"https://example.com/\x00", "https://example.com\\@127.0.0.1/", "https:\\\\example.com/", "https://example.com/\u2028",
		"https://example.com/a b", "https://exam\u00a0ple.com/", "https://example.com/\x7f",
	},
	"not a URL": {
		"https://example.com:port/", "https://[::1/", "https://::1/", "https://example.com/%zz", "https://%6c%6f%63al.test/",
		"https://[2606:4700::1111]x/", "://example.com",
		"https://[8.8.8.8]/", "https://[]/", "https://[v1.x]/",
	},
	"port": {"https://example.com:0/", "https://example.com:65536/", "https://example.com:99999999999999999999/"},
	"local": {
		"https://localhost/", "https://LOCALHOST/", "https://localhost./", "https://localhost:8443/", "https://a.localhost/",
		"https://a.b.localhost:1/x", "https://printer.local/", "https://PRINTER.LOCAL./", "https://local/",
		"https://metadata.google.internal/", "https://internal/", "https://a.internal./", "https://x.Internal/",
	},
	"not a full one": {"https://intranet/", "https://db/", "https://metadata/", "https://com./"},
	"not a host name": {
		"https://-a.example.com/", "https://a-.example.com/", "https://a..example.com/", "https://.example.com/",
		"https://example.com../", "https://ex*mple.com/", "https://exämple.com/",
		"https://\u212aey.example/", "https://%E2%84%AAey.example/", "https://\u0130d.example/", "https://hook\u017f.example/",
		"https://hooks.exampl\u0435/", "https://hooks.example\u3002com/", "https://hooks\u200b.example.com/",
		"https://ｌocalhost/", "https://①②⑦.example.com/",
		"https://127。0。0。1/", "https://" + strings.Repeat("a", 64) + ".com/", "https://a,b.com/", "https://a$b.com/",
		"https://①②⑦.0.0.1/", "https://ⓔⓧⓐⓜⓟⓛⓔ.com/", "https://exam!ple.com/",
	},
	"longer than 253": {"https://" + strings.Repeat("a.", 126) + "com/", "https://./", "https://:443/"},
	"unusual form": {
		"https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0x7f.0.0.1/", "https://017700000001/",
		"https://0177.0.0.1/", "https://127.1/", "https://127.0.1/", "https://0/", "https://1/", "https://0x/",
		"https://127.0.0.01/", "https://8.8.8.08/", "https://010.8.8.8/", "https://8.8.8.8.8/", "https://256.8.8.8/",
		"https://8.8.8.0x8/", "https://0xA9FEA9FE/", "https://169.254.43518/", "https://example.123/", "https://a.0x7f/",
		"https://4294967295/", "https://3232235521./",
	},
	"zone": {
		"https://[fe80::1%25eth0]/", "https://[2606:4700::1111%25eth0]/", "https://[::1%25lo]/", "https://[fe80::1%251]:443/",
	},
	"not public": {
		"https://0.0.0.0/", "https://0.1.2.3/", "https://10.0.0.1/", "https://10.255.255.255/", "https://100.64.0.1/",
		"https://100.127.255.255/", "https://127.0.0.1/", "https://127.0.0.1./", "https://127.255.255.255:443/",
		"https://169.254.169.254/latest/meta-data/", "https://169.254.0.1/", "https://172.16.0.1/", "https://172.31.255.255/",
		"https://192.0.0.1/", "https://192.0.0.8/", "https://192.0.0.9/", "https://192.0.0.170/", "https://192.0.2.1/",
		"https://192.31.196.1/", "https://192.52.193.1/", "https://192.88.99.1/", "https://192.88.99.2/",
		"https://192.168.0.1/", "https://192.175.48.1/", "https://198.18.0.1/", "https://198.19.255.255/",
		"https://198.51.100.1/", "https://203.0.113.1/", "https://224.0.0.1/", "https://239.255.255.250/",
		"https://240.0.0.1/", "https://255.255.255.255/", "https://[::]/", "https://[::1]/", "https://[0:0:0:0:0:0:0:1]:1/",
		"https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::ffff:8.8.8.8]/", "https://[::127.0.0.1]/",
		"https://[::8.8.8.8]/", "https://[::ffff:0:8.8.8.8]/", "https://[64:ff9b::8.8.8.8]/", "https://[64:ff9b::7f00:1]/",
		"https://[64:ff9b:1::1]/", "https://[64:ff9b:1:ffff::a00:1]/", "https://[100::1]/", "https://[100:0:0:1::1]/",
		"https://[2001::1]/", "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "https://[2001:1::1]/",
		"https://[2001:2::1]/", "https://[2001:3::1]/", "https://[2001:4:112::1]/", "https://[2001:10::1]/",
		"https://[2001:20::1]/", "https://[2001:30::1]/", "https://[2001:1ff:ffff::1]/", "https://[2001:db8::1]/",
		"https://[2002:7f00:1::]/", "https://[2002:808:808::1]/", "https://[2620:4f:8000::1]/", "https://[3fff::1]/",
		"https://[3fff:fff:ffff::1]/", "https://[4000::1]/", "https://[5f00::1]/", "https://[fc00::1]/",
		"https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[febf::1]/", "https://[fec0::1]/", "https://[ff02::1]/",
		"https://[ff0e::1]/", "https://[1::1]/", "https://[e000::1]/",
	},
}

func TestRefusedURLs(t *testing.T) {
	n := 0
	for word, urls := range refusedURLs {
		for _, raw := range urls {
			n++
			target, err := Policy{}.ParseURL(raw)
			if !fault.Has(err, fault.InvalidWebhookEndpoint) || !strings.Contains(err.Error(), word) {
				t.Errorf("%q: %+v, %v; the reason should say %q", raw, target, err, word)
			}
		}
	}
	if n < 120 {
		t.Errorf("only %d vectors", n)
	}
}

func TestARefusalNamesTheField(t *testing.T) {
	_, err := Policy{}.ParseURL("https://10.0.0.1/")
	e, ok := err.(*fault.Error)
	if !ok || len(e.Details) != 1 || e.Details[0].Field != "url" || e.Details[0].Issue != "its address is not public (private use)" {
		t.Errorf("%+v", err)
	}
}

// allowedURLs maps what a user may give to what is kept of it.
var allowedURLs = map[string]string{
	"https://example.com":                          "https://example.com",
	"https://example.com/":                         "https://example.com/",
	"HTTPS://Example.COM/Hook":                     "https://example.com/Hook",
	"https://example.com./hook":                    "https://example.com/hook",
	"https://example.com:443/hook":                 "https://example.com:443/hook",
	"https://example.com:8443/hook?a=b&c=%20":      "https://example.com:8443/hook?a=b&c=%20",
	"https://example.com:/hook":                    "https://example.com/hook",
	"https://example.com/hook#part":                "https://example.com/hook",
	"https://example.com/#":                        "https://example.com/",
	"https://example.com#user@x":                   "https://example.com",
	"https://example.com?x=1#y":                    "https://example.com?x=1",
	"https://a.b.c.d.example.co.uk/x/y/z":          "https://a.b.c.d.example.co.uk/x/y/z",
	"https://xn--exmple-cua.com/":                  "https://xn--exmple-cua.com/",
	"https://hooks_1.example.com/a@b":              "https://hooks_1.example.com/a@b",
	"https://localhost.example.com/":               "https://localhost.example.com/",
	"https://internal.example.com/local":           "https://internal.example.com/local",
	"https://mylocal.example/":                     "https://mylocal.example/",
	"https://notinternal.net/":                     "https://notinternal.net/",
	"https://123.example.com/":                     "https://123.example.com/",
	"https://0x7f.example.com/":                    "https://0x7f.example.com/",
	"https://8.8.8.8/":                             "https://8.8.8.8/",
	"https://1.1.1.1:65535/":                       "https://1.1.1.1:65535/",
	"https://[2606:4700:4700::1111]/":              "https://[2606:4700:4700::1111]/",
	"https://[2606:4700:4700:0:0:0:0:1111]:8443/x": "https://[2606:4700:4700::1111]:8443/x",
	"https://[2A00:1450::8]":                       "https://[2a00:1450::8]",
	"https://example.com/h%C3%A4ngen":              "https://example.com/h%C3%A4ngen",
	"https://example.com/hängen":                   "https://example.com/h%C3%A4ngen",
	"https://example.com/a%2Fb":                    "https://example.com/a%2Fb",
}

func TestAllowedURLs(t *testing.T) {
	for raw, want := range allowedURLs {
		target, err := Policy{}.ParseURL(raw)
		if err != nil || target.URL != want {
			t.Errorf("%q: %+v, %v", raw, target, err)
			continue
		}
		again, err := Policy{}.ParseURL(target.URL)
		if err != nil || again != target {
			t.Errorf("%q is read differently a second time: %+v, %v", target.URL, again, err)
		}
	}
}

func TestTargets(t *testing.T) {
	four, six := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2606:4700::1111")
	cases := map[string]Target{
		"https://Example.com./x":         {URL: "https://example.com/x", Host: "example.com", Port: "443"},
		"https://example.com:8443":       {URL: "https://example.com:8443", Host: "example.com", Port: "8443"},
		"https://8.8.8.8/":               {URL: "https://8.8.8.8/", Host: "8.8.8.8", Port: "443", Address: four},
		"https://[2606:4700::1111]:444/": {URL: "https://[2606:4700::1111]:444/", Host: six.String(), Port: "444", Address: six},
	}
	for raw, want := range cases {
		if got, err := (Policy{}).ParseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
}

func TestADevelopmentHostMayDeliverToItself(t *testing.T) {
	dev := Policy{AllowPrivate: true}
	for _, raw := range []string{
		"https://127.0.0.1:9000/", "https://localhost:9000/", "https://[::1]:9000/", "https://receiver/", "https://10.1.2.3/",
		"https://a.internal/", "https://8.8.8.8/",
	} {
		if _, err := dev.ParseURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{
		"http://127.0.0.1/", "https://u@127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://[fe80::1%25eth0]/", "https:///",
	} {
		if _, err := dev.ParseURL(raw); !fault.Has(err, fault.InvalidWebhookEndpoint) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestNetworksOfTheOperatorAreRefused(t *testing.T) {
	for _, allowPrivate := range []bool{false, true} {
		p := Policy{AllowPrivate: allowPrivate, Refused: []netip.Prefix{
			netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("2606:4700::/32"),
		}}
		for raw, allowed := range map[string]bool{
			"https://8.8.8.8/": false, "https://8.8.4.4/": true, "https://[2606:4700::1]/": false, "https://[2a00:1450::8]/": true,
			"https://[::ffff:8.8.8.8]/": false,
		} {
			if _, err := p.ParseURL(raw); (err == nil) != allowed {
				t.Errorf("%v %s: %v", allowPrivate, raw, err)
			}
		}
	}
}

// A network of one family has no part in the other, though their first bytes are the same.
func TestNetworksOfTheOtherFamily(t *testing.T) {
	p := Policy{Refused: []netip.Prefix{netip.MustParsePrefix("38.6.0.0/16"), netip.MustParsePrefix("808:808::/64")}}
	for a, allowed := range map[string]bool{"2606:4700::1": true, "8.8.8.8": true, "38.6.0.1": false} {
		if p.Allows(netip.MustParseAddr(a)) != allowed {
			t.Errorf("%s: %v", a, !allowed)
		}
	}
}

func TestEveryAddressOfANameMustBePublic(t *testing.T) {
	public, other, private := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2a00:1450::8"), netip.MustParseAddr("10.0.0.1")
	cases := []struct {
		addresses []netip.Addr
		allowed   bool
	}{
		{nil, false}, {[]netip.Addr{{}}, false}, {[]netip.Addr{public}, true}, {[]netip.Addr{public, other}, true},
		{[]netip.Addr{private}, false}, {[]netip.Addr{public, private}, false}, {[]netip.Addr{private, public}, false},
	}
	for _, c := range cases {
		err := Policy{}.DecideAddresses(c.addresses)
		if (err == nil) != c.allowed || err != nil && !fault.Has(err, fault.InvalidWebhookEndpoint) {
			t.Errorf("%v: %v", c.addresses, err)
		}
	}
	if err := (Policy{AllowPrivate: true}).DecideAddresses([]netip.Addr{private}); err != nil {
		t.Error(err)
	}
}

// Whatever is let through is an https URL to a public address or a full name, has no user and no fragment, and is read the
// same way again.
func FuzzParseURL(f *testing.F) {
	for _, urls := range refusedURLs {
		for _, raw := range urls {
			f.Add(raw)
		}
	}
	for raw := range allowedURLs {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := Policy{}.ParseURL(raw)
		if err != nil {
			if !fault.Has(err, fault.InvalidWebhookEndpoint) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !strings.HasPrefix(target.URL, "https://"+authority(target, false)) || strings.Contains(target.URL, "#") {
			t.Fatalf("%q became %+v", raw, target)
		}
		if a, err := netip.ParseAddr(target.Host); (err == nil) != target.Address.IsValid() || err == nil && !(Policy{}).Allows(a) {
			t.Fatalf("%q reaches %+v", raw, target)
		}
		if again, err := (Policy{}).ParseURL(target.URL); err != nil || again != target {
			t.Fatalf("%q became %+v, then %+v (%v)", raw, target, again, err)
		}
	})
}
