package protocol

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/command"
)

// WriteQuestion returns the path and the body of a question. One that has no body is asked by GET or DELETE.
func WriteQuestion(q command.Question) (path string, body []byte, err error) {
	path = q.Route().Path
	eachOfPath(reflect.ValueOf(q), func(name string, field reflect.Value) {
		text := field.String()
		if field.CanInt() {
			text = strconv.FormatInt(field.Int(), 10)
		}
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(text))
	})
	if HasBody(q) {
		body, err = json.Marshal(q)
	}
	return path, body, err
}

// ReadPath sets what of a question, given by its address, stands in its path. What should be a number and is none becomes -1.
func ReadPath(q any, value func(name string) string) {
	eachOfPath(reflect.ValueOf(q).Elem(), func(name string, field reflect.Value) {
		if !field.CanInt() {
			field.SetString(value(name))
			return
		}
		number, err := strconv.ParseUint(value(name), 10, 63)
		if field.SetInt(int64(number)); err != nil {
			field.SetInt(-1)
		}
	})
}

// HasBody reports whether a question comes with a body of JSON. That of a PATCH is the bytes that it sends.
func HasBody(q command.Question) bool {
	method := q.Route().Method
	return method == "POST" || method == "PUT"
}

func eachOfPath(q reflect.Value, do func(name string, field reflect.Value)) {
	for i := range q.NumField() {
		if name := q.Type().Field(i).Tag.Get("path"); name != "" {
			do(name, q.Field(i))
		}
	}
}
