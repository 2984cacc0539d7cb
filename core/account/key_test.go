package account

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

const sample = "ABCDEFGHabcdefghijklmnopqrstuvwxyz012345"

var randomCharacters = rapid.StringMatching(`[0-9A-Za-z]{40}`)

func TestKeyShape(t *testing.T) {
	for kind, prefix := range map[KeyKind]string{AccountKey: "pgh", CIKey: "pghci"} {
		text, c := NewKey(kind, sample)
		if want := prefix + "_ABCDEFGH_abcdefghijklmnopqrstuvwxyz012345"; text[:len(text)-6] != want {
			t.Errorf("%s: %s", kind, text)
		}
		k := Key{Kind: kind, ID: c.ID, Hash: c.Hash[:]}
		if k.Prefix() != prefix+"_ABCDEFGH" {
			t.Errorf("%s: the visible prefix is %s", kind, k.Prefix())
		}
		if c.Hash != sha256.Sum256([]byte(text)) {
			t.Errorf("%s: the hash is not of the whole key", kind)
		}
	}
}

// The checksum is the CRC-32 of everything before it, in base62 with the digits 0-9, A-Z, a-z. big.Int has its lower-case
// letters first, so the digits are compared with the case turned round.
func TestChecksumIsCRC32InBase62(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _ := NewKey(AccountKey, randomCharacters.Draw(t, "random"))
		body, sum := text[:len(text)-6], text[len(text)-6:]
		want := new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))).Text(62)
		want = strings.Repeat("0", 6-len(want)) + swapCase(want)
		if sum != want {
			t.Fatalf("%s: the checksum is %s, not %s", text, sum, want)
		}
	})
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func TestParseKeyReadsWhatNewKeyWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]KeyKind{AccountKey, CIKey}).Draw(t, "kind")
		text, made := NewKey(kind, randomCharacters.Draw(t, "random"))
		read, err := ParseKey(text)
		if err != nil || read != made {
			t.Fatalf("%s: %+v, %v", text, read, err)
		}
	})
}

// CRC-32 finds every change of one character, and nearly every other one.
func TestOneChangedCharacterIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _ := NewKey(AccountKey, randomCharacters.Draw(t, "random"))
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		with := rapid.Byte().Draw(t, "with")
		if text[at] == with {
			return
		}
		if _, err := ParseKey(text[:at] + string([]byte{with}) + text[at+1:]); err == nil {
			t.Fatalf("%s is accepted with %q at %d", text, with, at)
		}
	})
}

// withSum makes a text whose checksum is right, so that only its shape can be wrong.
func withSum(body string) string { return body + checksum(body) }

func TestMalformedKeys(t *testing.T) {
	good, _ := NewKey(AccountKey, sample)
	id, secret := sample[:8], sample[8:]
	cases := map[string]string{
		"empty":                 "",
		"prefix only":           "pgh_",
		"no checksum":           good[:len(good)-6],
		"one character short":   good[:len(good)-1],
		"one character more":    good + "0",
		"space before":          " " + good,
		"space after":           good + " ",
		"line break after":      good + "\n",
		"Bearer left in":        "Bearer " + good,
		"prefix in upper case":  withSum("PGH_" + id + "_" + secret),
		"another prefix":        withSum("pgx_" + id + "_" + secret),
		"CI prefix, other sum":  "pghci" + good[3:],
		"hyphen for underscore": withSum("pgh_" + id + "-" + secret),
		"underscore in ID":      withSum("pgh_ABCD_FGH_" + secret),
		"ID too short":          withSum("pgh_ABCDEFG_a" + secret),
		"not base62 in ID":      withSum("pgh_ABCDEFG!_" + secret),
		"not base62 in secret":  withSum("pgh_" + id + "_" + secret[:31] + "-"),
		"two bytes, one rune":   withSum("pgh_" + id + "_" + secret[:30] + "é"),
		"NUL in secret":         withSum("pgh_" + id + "_" + secret[:31] + "\x00"),
	}
	want := ErrUnauthorized().Error()
	for name, text := range cases {
		c, err := ParseKey(text)
		if err == nil || err.Error() != want || c != (Credential{}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if !fault.Has(ErrUnauthorized(), fault.Unauthorized) {
		t.Error("a malformed key is not UNAUTHORIZED")
	}
}

func TestAccepts(t *testing.T) {
	_, c := NewKey(AccountKey, sample)
	_, other := NewKey(AccountKey, strings.Repeat("x", KeyCharacters))
	now := time.Unix(0, 0)
	later, before := now.Add(1), now.Add(-1)
	cases := map[string]struct {
		key  Key
		hash [32]byte
		want bool
	}{
		"its own":       {Key{Hash: c.Hash[:]}, c.Hash, true},
		"another's":     {Key{Hash: c.Hash[:]}, other.Hash, false},
		"revoked":       {Key{Hash: c.Hash[:], RevokedAt: &now}, c.Hash, false},
		"ends later":    {Key{Hash: c.Hash[:], ExpiresAt: &later}, c.Hash, true},
		"ends now":      {Key{Hash: c.Hash[:], ExpiresAt: &now}, c.Hash, false},
		"has ended":     {Key{Hash: c.Hash[:], ExpiresAt: &before}, c.Hash, false},
		"no hash":       {Key{}, c.Hash, false},
		"half the hash": {Key{Hash: c.Hash[:16]}, c.Hash, false},
		"zero hash":     {Key{}, [32]byte{}, false},
	}
	for name, v := range cases {
		if got := v.key.Accepts(v.hash, now); got != v.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAdmits(t *testing.T) {
	_, c := NewKey(AccountKey, sample)
	_, other := NewKey(AccountKey, strings.Repeat("x", KeyCharacters))
	now := time.Unix(0, 0)
	inside, outside := netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("192.0.2.7")
	bound := Key{Hash: c.Hash[:], Networks: "10.0.0.0/8 2001:db8::/32"}
	expired := bound
	expired.ExpiresAt = &now
	for name, v := range map[string]struct {
		key  Key
		hash [32]byte
		from netip.Addr
		want bool
	}{
		"from a network":            {bound, c.Hash, inside, true},
		"from one, as IPv6":         {bound, c.Hash, netip.MustParseAddr("::ffff:10.1.2.3"), true},
		"from elsewhere":            {bound, c.Hash, outside, false},
		"from nobody knows where":   {bound, c.Hash, netip.Addr{}, false},
		"from anywhere":             {Key{Hash: c.Hash[:]}, c.Hash, outside, true},
		"from anywhere, not known":  {Key{Hash: c.Hash[:]}, c.Hash, netip.Addr{}, true},
		"another's, from a network": {bound, other.Hash, inside, false},
		"expired, from a network":   {expired, c.Hash, inside, false},
	} {
		if got := v.key.Admits(v.hash, v.from, now); got != v.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A key that is taken is one that the service has written, to its checksum.
func FuzzParseKey(f *testing.F) {
	account, _ := NewKey(AccountKey, sample)
	ci, _ := NewKey(CIKey, sample)
	f.Add(account)
	f.Add(ci)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseKey(text)
		if err != nil {
			return
		}
		random := string(c.ID) + text[len(text)-checksumLength-keySecretLength:len(text)-checksumLength]
		if again, same := NewKey(c.Kind, random); again != text || same != c {
			t.Errorf("%q is accepted, but NewKey would have written %q", text, again)
		}
	})
}

func TestParseKeyID(t *testing.T) {
	for text, want := range map[string]id.KeyID{
		"0a1B2c3D": "0a1B2c3D", "pgh_0a1B2c3D": "0a1B2c3D", "pghci_0a1B2c3D": "0a1B2c3D",
	} {
		if got, err := ParseKeyID("key", text); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	whole, _ := NewKey(AccountKey, strings.Repeat("secret00", 5))
	for _, text := range []string{"", "0a1B2c3", "0a1B2c3D4", "0a1B2c3-", "pgh-0a1B2c3D", "PGH_0a1B2c3D", "pgh_pgh_0a1B", whole} {
		got, err := ParseKeyID("key", text)
		if err == nil || got != "" || strings.Contains(err.Error(), "secret00secret00") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// What names a key by its prefix names it by its ID, too.
func FuzzParseKeyID(f *testing.F) {
	for _, text := range []string{"", "0a1B2c3D", "pgh_0a1B2c3D", "pghci_0a1B2c3D", "pgh_0a1B2c3D_"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseKeyID("key", text)
		_, again := ParseKeyID("key", string(got))
		if (err == nil) != (again == nil) || err == nil && !strings.HasSuffix(text, string(got)) {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	})
}
