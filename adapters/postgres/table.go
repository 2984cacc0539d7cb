package postgres

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	sq "github.com/Masterminds/squirrel"
	"github.com/jmoiron/sqlx/reflectx"
)

// table maps a type of the domain to its table: the db tags of the type are the columns.
type table[T any] struct {
	name    string
	columns []string
	// optional are the uuid columns in which an empty identifier is stored as NULL.
	optional []string
}

var mapper = reflectx.NewMapper("db")

// tableOf makes the table of T, without those columns of T that other tables hold.
func tableOf[T any](name string, elsewhere ...string) table[T] {
	var columns []string
	for _, field := range mapper.TypeMap(reflect.TypeFor[T]()).Index {
		tag := field.Field.Tag.Get("db")
		if tag != "" && tag == field.Path && !slices.Contains(elsewhere, tag) {
			columns = append(columns, tag)
		}
	}
	return table[T]{name: name, columns: columns}
}

// withOptional names the uuid columns in which an empty identifier is stored as NULL.
func (t table[T]) withOptional(columns ...string) table[T] {
	t.optional = columns
	return t
}

// list is what a SELECT of the row returns, with its columns qualified by alias.
func (t table[T]) list(alias string) []string {
	list := make([]string, len(t.columns))
	for i, column := range t.columns {
		list[i] = alias + "." + column
		if slices.Contains(t.optional, column) {
			list[i] = "coalesce(" + alias + "." + column + "::text, '') AS " + column
		}
	}
	return list
}

// row is list as one text, for statements that are written.
func (t table[T]) row(alias string) string { return strings.Join(t.list(alias), ", ") }

// read begins a SELECT of whole rows; the table's alias is t.
func (t table[T]) read() sq.SelectBuilder { return dollar.Select(t.list("t")...).From(t.name + " t") }

// insert builds the INSERT of a row; its arguments are those of values.
func (t table[T]) insert() sq.InsertBuilder {
	places := make([]any, len(t.columns))
	for i, column := range t.columns {
		places[i] = sq.Expr("?", nil)
		if slices.Contains(t.optional, column) {
			places[i] = sq.Expr("nullif(?, '')::uuid", nil)
		}
	}
	return dollar.Insert(t.name).Columns(t.columns...).Values(places...)
}

// values are the arguments of insert.
func (t table[T]) values(row T) []any { return valuesOf(row, t.columns) }

// update builds the UPDATE of some columns; its arguments are those columns' values, then those of where.
func (t table[T]) update(columns []string, where string) sq.UpdateBuilder {
	update := dollar.Update(t.name)
	for _, column := range columns {
		var value any
		if slices.Contains(t.optional, column) {
			value = sq.Expr("nullif(?, '')::uuid", nil)
		}
		update = update.Set(column, value)
	}
	return update.Where(where)
}

// valuesOf are the fields of row with these db tags. An empty JSON text is stored as null.
func valuesOf[T any](row T, columns []string) []any {
	known, fields := mapper.TypeMap(reflect.TypeFor[T]()), reflect.ValueOf(row)
	values := make([]any, len(columns))
	for i, column := range columns {
		// Not the mapper's own look-up, which replaces nil pointers with pointers to zero values.
		values[i] = fields.FieldByIndex(known.GetByPath(column).Index).Interface()
		if raw, ok := values[i].(json.RawMessage); ok && len(raw) == 0 {
			values[i] = json.RawMessage("null")
		}
	}
	return values
}
