package pooler

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// clientsOf makes clients from words such as "3*idle@shop", the oldest first.
func clientsOf(words string) (clients []Client) {
	for word := range strings.FieldsSeq(words) {
		times, what, _ := strings.Cut(word, "*")
		state, entry, _ := strings.Cut(what, "@")
		n, err := strconv.Atoi(times)
		if err != nil {
			panic(err)
		}
		for range n {
			c := Client{ID: strconv.Itoa(len(clients) + 5), Entry: entry, State: state, Address: netip.MustParseAddr("192.0.2.1")}
			switch state {
			case "working":
				c.State, c.Linked = "active", true
			case "proving": // the agent does
				c.State, c.Address = "idle", netip.Addr{}
			}
			clients = append(clients, c)
		}
	}
	return clients
}

// wordsOf writes clients in these words, in their order.
func wordsOf(clients []Client) string {
	var words []string
	times := 0
	for i, c := range clients {
		times++
		if i+1 == len(clients) || clients[i+1].State != c.State || clients[i+1].Entry != c.Entry {
			words = append(words, fmt.Sprintf("%d*%s@%s", times, c.State, c.Entry))
			times = 0
		}
	}
	return strings.Join(words, " ")
}

// ofHundred is a limit of 100 clients. The share of account a is 24, that of b 24, those of lone and far 16 each.
func ofHundred(clients []Client, others int) census {
	return census{limit: 100, uncapped: 20, total: len(clients) + others, clients: clients, holdings: []Holding{
		{"shop", "a", 30}, {"blog", "b", 10}, {"toys", "b", 20}, {"lone", "", 0}, {"far", "", 20},
	}}
}

func TestSurplus(t *testing.T) {
	for what, c := range map[string]struct {
		clients string
		others  int // who count, but are not logged in
		want    string
	}{
		"to each its share":               {"24*idle@shop 24*idle@blog 16*idle@lone 16*idle@far", 20, ""},
		"down to the low mark":            {"81*idle@shop", 0, "11*idle@shop"},
		"no further than the share":       {"30*idle@shop 24*idle@blog 16*idle@lone 16*idle@far", 0, "6*idle@shop"},
		"the newest of all first":         {"30*idle@shop 30*idle@lone 21*idle@toys", 0, "11*idle@lone"},
		"then those that are older":       {"30*idle@lone 30*idle@shop 21*idle@toys", 0, "6*idle@shop 5*idle@lone"},
		"both entries count":              {"20*idle@shop 10*idle@shop.transaction", 60, "6*idle@shop.transaction"},
		"all of an account's databases":   {"20*idle@toys 20*idle@blog 16*idle@far", 40, "16*idle@blog"},
		"no account known, so each alone": {"30*idle@lone 2*idle@far", 60, "14*idle@lone"},
		"as earlier versions say it":      {"81*active@shop", 0, "11*active@shop"},
		"only who is idle":                {"61*idle@shop 20*working@shop", 0, "11*idle@shop"},
		"who waits stays if that will do": {"11*idle@shop 74*waiting@shop", 0, "11*idle@shop"},
		"who waits, if it will not":       {"1*idle@shop 90*waiting@shop", 0, "1*idle@shop 10*waiting@shop"},
		"nobody with a server connection": {"100*working@shop", 0, ""},
		"nobody who cancels":              {"90*active_cancel_req@shop 10*waiting_cancel_req@shop", 0, ""},
		"the agent stays":                 {"5*idle@shop 76*proving@shop", 0, "5*idle@shop"},
		"nobody of another entry":         {"50*idle@pgherd 50*waiting@pgbouncer", 0, ""},
		"strangers leave less room":       {"25*idle@shop", 60, "1*idle@shop"},
	} {
		if got := wordsOf(ofHundred(clientsOf(c.clients), c.others).surplus()); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// anyCensus draws more clients than highMark admits.
func anyCensus(t *rapid.T) census {
	c := census{limit: rapid.IntRange(1, 60).Draw(t, "limit"), uncapped: rapid.IntRange(1, 9).Draw(t, "uncapped")}
	entries := []string{"pgbouncer"}
	for i := range rapid.IntRange(0, 5).Draw(t, "databases") {
		h := Holding{
			Database: strconv.Itoa(i), Account: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "account"),
			ConnectionCap: rapid.IntRange(0, 9).Draw(t, "cap"),
		}
		c.holdings = append(c.holdings, h)
		entries = append(entries, EntryNames(h.Database)...)
	}
	for i := range rapid.IntRange(c.limit*highMark/100+1, c.limit+5).Draw(t, "clients") {
		c.clients = append(c.clients, Client{
			ID: strconv.Itoa(i + 1), Entry: rapid.SampledFrom(entries).Draw(t, "entry"),
			State:   rapid.SampledFrom([]string{"active", "idle", "waiting", "active_cancel_req"}).Draw(t, "state"),
			Linked:  rapid.IntRange(0, 3).Draw(t, "linked") == 0,
			Address: rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("192.0.2.1"), netip.IPv6Loopback()}).Draw(t, "address"),
		})
	}
	c.total = len(c.clients) + rapid.IntRange(0, 3).Draw(t, "others")
	return c
}

// fate is what becomes of one owner's clients. idle and waited are those that stay idle, and those that go although they wait.
type fate struct{ share, goes, stays, idle, waited int }

func fates(c census, goes map[string]bool) map[owner]fate {
	owners, fates, all := c.owners(), make(map[owner]fate), 0
	for _, h := range c.holdings {
		all += cmp.Or(h.ConnectionCap, c.uncapped)
	}
	for _, h := range c.holdings {
		f := fates[owners[h.Database]]
		f.share += c.limit * highMark / 100 * cmp.Or(h.ConnectionCap, c.uncapped) // divided below
		fates[owners[h.Database]] = f
	}
	for of, f := range fates {
		f.share /= all
		for _, client := range c.clients {
			switch {
			case owners[client.Entry] != of:
			case !goes[client.ID]:
				f.stays++
				f.idle += count(client.idle() && client.Address.IsValid())
			default:
				f.goes++
				f.waited += count(client.waiting())
			}
		}
		fates[of] = f
	}
	return fates
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func TestSurplusKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, goes := anyCensus(t), make(map[string]bool)
		for _, client := range c.surplus() {
			if goes[client.ID] = true; client.Linked || !client.Address.IsValid() || !client.idle() && !client.waiting() {
				t.Fatalf("%+v goes", client)
			}
		}
		stillAbove := c.total-len(goes) > c.limit*highMark/100
		for of, f := range fates(c, goes) {
			if f.goes > 0 && f.stays < f.share {
				t.Errorf("%+v has less than its share: %+v", of, f)
			}
			if f.stays > f.share && f.idle > 0 && (stillAbove || f.waited > 0) {
				t.Errorf("%+v keeps idle clients beyond its share: %+v", of, f)
			}
		}
		owners := c.owners()
		for i, older := range c.clients {
			for _, newer := range c.clients[i+1:] {
				alike := owners[older.Entry] == owners[newer.Entry] && older.idle() && newer.idle() && newer.Address.IsValid()
				if alike && goes[older.ID] && !goes[newer.ID] {
					t.Errorf("%+v goes before %+v", older, newer)
				}
			}
		}
	})
}
