//! Templates of one's own stand beside and in place of the built-in ones, and every error says where it is.

use super::*;

const BUILT_IN: BuiltIn = &[
    ("greeting.tera", "Hello {{ name }}{% include \"end.tera\" %}\n"),
    ("end.tera", "!"),
];

#[derive(Serialize)]
struct Who {
    name: &'static str,
}

fn own(name: &str, text: &str) -> Own {
    Own {
        name: name.to_owned(),
        shown: format!("mine/{name}"),
        text: text.to_owned(),
    }
}

fn greet(own: &[Own]) -> Result<String, String> {
    let templates = Templates::new(BUILT_IN, own).map_err(|error| error.to_string())?;
    templates
        .render("greeting.tera", &Who { name: "<Ann & Bob>" })
        .map_err(|error| error.to_string())
}

#[test]
fn text_is_what_the_template_says_without_any_escape() {
    assert_eq!(greet(&[]).as_deref(), Ok("Hello <Ann & Bob>!\n"));
}

#[test]
fn a_template_of_ones_own_takes_the_place_of_the_one_of_its_name() {
    assert_eq!(greet(&[own("end.tera", "?")]).as_deref(), Ok("Hello <Ann & Bob>?\n"));
    let both = [
        own("greeting.tera", "{% include \"new.tera\" %}"),
        own("new.tera", "Hi {{ name }}"),
    ];
    assert_eq!(greet(&both).as_deref(), Ok("Hi <Ann & Bob>"));
}

#[test]
fn every_error_names_the_template_and_where_there_is_one_the_line() {
    let cases = [
        (
            "greeting.tera",
            "one\ntwo {{ nmae }}",
            "template mine/greeting.tera:2:8: ",
        ),
        ("end.tera", "\n\n{% if %}", "template mine/end.tera:3:7: "),
        ("end.tera", "{{ name | nosuch }}", "template mine/end.tera:1:11: "),
        (
            "greeting.tera",
            "{% include \"gone.tera\" %}",
            "template mine/greeting.tera:1:",
        ),
        (
            "greeting.tera",
            "\n{% extends \"gone.tera\" %}",
            "template mine/greeting.tera:2:1: ",
        ),
        // Round a circle: where a template of it leads to the next one.
        (
            "end.tera",
            "\n  {%- include 'end.tera' %}",
            "template mine/end.tera:2:3: ",
        ),
        (
            "end.tera",
            "\n\n{% extends \"end.tera\" %}",
            "template mine/end.tera:3:1: ",
        ),
        (
            "end.tera",
            "one\n{% include \"greeting.tera\" %}",
            "template mine/end.tera:2:1: ",
        ),
        // A component that comes to itself again, by way of another.
        (
            "end.tera",
            "{% component a() %}{{ <b/> }}{% endcomponent a %}\n {% component b() %}{{ <c/> }}{% endcomponent b %}\n\
             {% component c() %}{{ <b/> }}{% endcomponent c %}{{ <a/> }}",
            "template mine/end.tera:2:2: ",
        ),
    ];
    for (name, text, beginning) in cases {
        let error = greet(&[own(name, text)]).expect_err(text);
        assert!(error.starts_with(beginning), "{text}: {error}");
        assert!(error.len() > beginning.len() + 5 && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_component_that_two_templates_define_is_found_in_that_of_ones_own() {
    let component = "{% component twice() %}{% endcomponent twice %}";
    let built_in: BuiltIn = &[
        ("a.tera", "{% component twice() %}{% endcomponent twice %}"),
        ("b.tera", ""),
        ("c.tera", "{% component once() %}{% endcomponent once %}"),
    ];
    for name in ["b.tera", "0.tera"] {
        let own = [own(name, &format!("\n{component}")), own("b.tera", "")];
        let own = if name == "b.tera" { &own[..1] } else { &own[..] };
        let error = Templates::new(built_in, own).err().expect("both define it").to_string();
        assert!(error.starts_with(&format!("template mine/{name}:2:1: ")), "{error}");
    }
}

#[test]
fn a_template_that_is_not_there_is_named() {
    let templates = Templates::new(BUILT_IN, &[]).expect("both are right");
    let error = templates
        .render("gone.tera", &Who { name: "" })
        .expect_err("there is none");
    assert!(error.to_string().starts_with("template gone.tera"), "{error}");
}
