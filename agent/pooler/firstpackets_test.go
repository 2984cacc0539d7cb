package pooler

import "strings"

// shape is a kind of message that no honest client sends; draw makes one of its kind.
type shape struct {
	name string
	draw func(dice) []byte
}

// optionTexts are values of the parameter "options". PgBouncer understands "-c name=value" and "--name=value".
var optionTexts = []string{
	"", " ", "-", "--", "---", "-c", "-c ", "-c-c", "-d 5", "x", "=", "-c=", "-c =", "-c=1", "-c =1", "--=", "--=1", "-c==", "--==",
	"--name", "--name=", "-c name", "-c name=", "-cname=1", "-c a=b=c", "-c a=b -c=", "-c a=b --=", "-c=-c=", "-c a=b-c=",
	"-c extra_float_digits", "-c extra_float_digits=", "-c extra_float_digits=3", "-c extra_float_digits,=3", "-c ,=1",
	"-c extra_float_digits=3 -c=1", "--extra_float_digits=3 --=1", "-c application_name=", "-c search_path=x", "-c options=-c=",
	`\`, `-c \`, `-c a\`, `-c a=\`, `-c\ =1`, `-c \=1`, `-c a\ b=c\ d`, `-c "a=b`, `-c 'a=b`, `-c '=`, `--"=`, `-c a='b c'`,
	"-c\t=\n", "\t-c\v=1", "-c a=b  ", "-c\r\n=1", "-c \xff=\xfe", "-c %s%n=%n",
}

// askedNames are users and entries: real ones, the platform's, and none.
var askedNames = []string{
	"shop", "shop_rt", "blog", "shop.transaction", "nobody", "pgherd", "pgherd_pooler", "pgherd_pooler_admin", "pgbouncer",
	"postgres", "pgherd_canary", "template1", "all", "*", "", " ", ",", `"`, "'", "shop ", "SHOP", "\xff\xfe", "\xc3\x28", "%s%n",
	"../shop", "a\nb",
}

func longText(d dice) string {
	times := pick(d, 62, 63, 64, 127, 128, 129, 399, 400, 401, 4096, 9000) // a start-up packet holds 64 KiB
	return strings.Repeat(pick(d, "a", `\`, " ", "=", "-c ", "-c=", "--a=b "), times)
}

// withName is a start-up packet with a value for one parameter, and otherwise as shop sends it.
func withName(name, value string) []byte {
	return startup("user", "shop", "database", "shop", name, value)
}

var firstPackets = []shape{
	{"options from the list", func(d dice) []byte { return withName("options", pick(d, optionTexts...)) }},
	{"an empty name in the options", func(d dice) []byte {
		return withName("options", d.several(3, "-c a=1 ", "--a=1 ", "")+pick(d, "-c=", "--=", "-c =1", "--=1"))
	}},
	{"options of fragments", func(d dice) []byte {
		return withName("options", d.several(12, "-c", "--", "=", " ", `\`, "'", `"`, "a", ",", "\t", "extra_float_digits", "TimeZone"))
	}},
	{"long options", func(d dice) []byte { return withName("options", pick(d, "", "-c ", "-c a=", "--")+longText(d)) }},
	{"options again and again", func(d dice) []byte {
		return startup("options", pick(d, optionTexts...), "user", "shop", "options", pick(d, optionTexts...),
			"options", pick(d, optionTexts...))
	}},
	{"options of a replica", func(d dice) []byte {
		return startup("replication", pick(d, "1", "0", "true", "database", "no", "", "maybe"), "options", pick(d, optionTexts...),
			"options", longText(d), "user", pick(d, askedNames...), "database", pick(d, askedNames...))
	}},
	{"names", func(d dice) []byte {
		return startup("user", pick(d, askedNames...), "database", pick(d, askedNames...))
	}},
	{"long names", func(d dice) []byte { return startup("user", longText(d), "database", pick(d, "shop", longText(d))) }},
	{"no user", func(d dice) []byte { return startup(pick(d, "database", "", "User"), "shop") }},
	{"no database", func(d dice) []byte { return startup("user", pick(d, askedNames...)) }},
	{"no parameters", func(d dice) []byte { return packet(version3, pick(d, "", "\x00", "\x00\x00", "\x00user\x00shop\x00")) }},
	{"a name without a value", func(d dice) []byte {
		return packet(version3, "user\x00shop\x00"+pick(d, "database", "database\x00", "options\x00-c=", "options\x00\x00"))
	}},
	{"no end", func(d dice) []byte {
		return packet(version3, strings.TrimRight(parameters("user", "shop", pick(d, askedNames...), pick(d, askedNames...)), "\x00"))
	}},
	{"an unknown parameter", func(d dice) []byte { return withName(d.letters(1, 300), d.bytes(0, 300)) }},
	{"an odd value", func(d dice) []byte {
		return withName(pick(d, "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings", "application_name",
			"extra_float_digits", "search_path", "password"), pick(d, "", longText(d), d.letters(1, 300), "\xff\xfe", "'; x", "a\nb"))
	}},
	{"parameters of the protocol", func(d dice) []byte {
		return startup("_pq_."+d.letters(0, 40), d.letters(0, 40), "user", pick(d, askedNames...), "_pq_.", "", "database", "shop")
	}},
	{"another version", func(d dice) []byte {
		code := pick(d, 0, 1, 1<<16, 2<<16, version3+1, version32, version3+9999, 4<<16, 1<<32-1, d.Uint32())
		return packet(code, parameters("user", "shop", "database", "shop", "_pq_.x", "1"))
	}},
	{"a wrong length", func(d dice) []byte {
		body := parameters("user", "shop", "database", "shop", "options", pick(d, optionTexts...))
		code := pick[uint32](d, version3, version3, version32, sslRequest, gssRequest, cancelRequest)
		return packetOf(d.length(len(body)+8), code, body)
	}},
	{"half a packet", func(d dice) []byte {
		whole := withName("options", pick(d, optionTexts...))
		return whole[:d.IntN(len(whole))]
	}},
	{"two start-ups", func(d dice) []byte {
		second := startup("user", pick(d, askedNames...), "options", pick(d, optionTexts...))
		return append(startup("user", "shop", "database", "shop"), second...)
	}},
	{"TLS once more", func(d dice) []byte { return append(packet(sslRequest, ""), d.bytes(0, 20)...) }},
	{"GSS encryption", func(d dice) []byte {
		return append(packet(gssRequest, ""), pick(d, nil, withName("options", "-c="))...)
	}},
	{"encryption with a body", func(d dice) []byte { return packet(pick[uint32](d, sslRequest, gssRequest), d.bytes(1, 5000)) }},
	{"a cancellation", func(d dice) []byte { return packet(cancelRequest, d.bytes(0, 20)) }},
	{"a message with a type", func(d dice) []byte {
		body := d.bytes(0, 40)
		return messageOf(pick(d, []byte("pQXPBEDSHCFdcfR\x01\x16\x80\xff")...), d.length(len(body)+4), body)
	}},
	{"a large password message", func(d dice) []byte { return message('p', d.bytes(5000, 100_000)) }},
	{"garbage", func(d dice) []byte { return []byte(d.bytes(0, 9000)) }},
}
