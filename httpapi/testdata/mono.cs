// What the quickstart uses, and Mono lacks: System.Text.Json, and a Main that is async.
using System.Linq;
using System.Runtime.Serialization.Json;
using System.Text;
using System.Xml;
using System.Xml.Linq;

namespace System.Text.Json
{
    public class JsonDocument
    {
        public JsonElement RootElement;

        public static JsonDocument Parse(string json)
        {
            var reader = JsonReaderWriterFactory.CreateJsonReader(Encoding.UTF8.GetBytes(json), XmlDictionaryReaderQuotas.Max);
            return new JsonDocument { RootElement = new JsonElement { Of = XElement.Load(reader) } };
        }
    }

    public struct JsonElement
    {
        internal XElement Of;

        public JsonElement GetProperty(string name) => new JsonElement { Of = Of.Element(name) ?? throw new InvalidOperationException(name) };

        public bool TryGetProperty(string name, out JsonElement value)
        {
            value = new JsonElement { Of = Of.Element(name) };
            return value.Of != null;
        }

        public string GetString() => Of.Value;

        public override string ToString() => Of.Value;
    }

    public static class JsonSerializer
    {
        public static string Serialize(object value)
        {
            var fields = value.GetType().GetProperties().Select(p => $"\"{p.Name}\":\"{p.GetValue(value)}\"");
            return "{" + string.Join(",", fields) + "}";
        }
    }
}

class Entry
{
    static void Main() => Quickstart.Main().GetAwaiter().GetResult();
}
